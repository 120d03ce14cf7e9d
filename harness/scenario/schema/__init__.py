"""The scenario file: one class for each table, one field for each key."""
