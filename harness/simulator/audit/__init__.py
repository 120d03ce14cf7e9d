"""Checks of every stream's invariants, made in kernels after each turn of a swarm trial."""
