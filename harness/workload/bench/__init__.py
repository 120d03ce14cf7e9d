"""The load generators of the benchmark."""
