"""Suites and matrices of runs, executed sequentially or in parallel."""
