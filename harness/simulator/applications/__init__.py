"""Workload applications that the simulator steps on virtual time."""
