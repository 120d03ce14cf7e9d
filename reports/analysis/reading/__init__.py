"""Capture files, their parts, rows of frames, and totals."""
