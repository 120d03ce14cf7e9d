"""The drivers that can be tested: their names and command lines."""
