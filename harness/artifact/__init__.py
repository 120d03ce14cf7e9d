"""The contents of a run folder: all paths, record formats and document formats.

This package is the interface between the code that executes a run and the code that judges it or
reports on it. It only defines layouts. It does not define who writes the files or what they mean
for a verdict.
"""
