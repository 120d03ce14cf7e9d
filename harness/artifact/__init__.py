"""Artifacts of a run: all paths, record formats and documents of a run folder.

This package is the interface between the code that executes a run and the code that judges it or
reports on it. It defines layouts only: neither their writers nor their meaning for a verdict.
"""
