"""Checks of every stream's invariants, run by compiled kernels after each turn of a swarm trial."""
