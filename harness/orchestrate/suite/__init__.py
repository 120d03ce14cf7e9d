"""Suites and matrices: many runs, one after the other or in parallel."""
