"""One stream at one vantage point: gaps, repair, windows, images, outcomes of frames."""
