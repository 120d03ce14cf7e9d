"""The scenario file: one class per table, one field per key."""
