"""Reading of capture files: parts of files, rows of frames, and totals."""
