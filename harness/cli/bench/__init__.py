"""`windtunnel bench`: runs benchmarks and prints their results."""
