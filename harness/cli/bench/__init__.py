"""`windtunnel bench` and how its results are shown."""
