"""The drivers under test: their names and command lines."""
