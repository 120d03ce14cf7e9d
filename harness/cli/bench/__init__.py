"""`windtunnel bench`, and how its results are printed."""
