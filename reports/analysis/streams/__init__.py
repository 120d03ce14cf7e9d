"""Analysis of one stream at one vantage point: gaps, repair, windows, image, frame outcomes."""
