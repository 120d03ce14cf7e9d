"""Output formats: verdict lines, tables, and live progress displays."""
