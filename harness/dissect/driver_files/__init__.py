"""Parsers for the files of a media driver: cnc.dat, log buffers, the loss report."""
