"""Rules across tables: scenarios that are well-formed but cannot work."""
