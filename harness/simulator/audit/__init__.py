"""Compiled kernels that check every stream's invariants after each turn of a swarm trial."""
