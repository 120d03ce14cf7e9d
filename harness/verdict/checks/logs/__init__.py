"""Checks of log buffers, byte by byte."""
