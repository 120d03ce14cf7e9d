"""How results are shown: verdict lines, tables, live displays."""
