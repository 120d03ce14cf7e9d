"""The settings of a media driver: what there is, how it is written, and where it may come from."""
