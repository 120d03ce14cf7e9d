"""The settings of a media driver: names, types, bounds, defaults and the command line."""
