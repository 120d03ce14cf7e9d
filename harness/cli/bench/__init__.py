"""`windtunnel bench` and the output of its results."""
