"""Workloads that record, replay, replicate or merge through an archive."""
