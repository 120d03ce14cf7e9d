"""The settings of a media driver, with their names, types, ranges and defaults."""
