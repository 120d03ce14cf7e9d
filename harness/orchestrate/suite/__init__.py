"""Suites and matrices of runs, which are executed sequentially or in parallel."""
