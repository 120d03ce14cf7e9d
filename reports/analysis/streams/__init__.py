"""Analysis of a stream at one vantage point: gaps, repair, windows, image, frame outcomes."""
