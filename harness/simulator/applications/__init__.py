"""Workload applications that are stepped on virtual time."""
