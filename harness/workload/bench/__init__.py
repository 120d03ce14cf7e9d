"""Load generators of the benchmark."""
