"""Reading of capture files: their parts, rows of frames, and totals."""
