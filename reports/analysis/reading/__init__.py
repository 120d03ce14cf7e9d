"""Reading of capture files: selection, parallel parts, the frame table, and totals."""
