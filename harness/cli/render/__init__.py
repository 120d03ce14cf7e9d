"""Output formats of the command line: verdict lines, tables, and live progress displays."""
