"""Analysis of a stream at one vantage point: gaps, repair, flow control, image, frame outcomes."""
