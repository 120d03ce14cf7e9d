"""The drivers under test: by name, and as command lines."""
