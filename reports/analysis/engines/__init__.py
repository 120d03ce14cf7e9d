"""The two engines of the analysis, which return the same rows."""
