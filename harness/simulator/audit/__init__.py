"""Invariants of every stream, checked in the kernel at every turn of a swarm trial."""
