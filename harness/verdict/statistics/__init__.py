"""Binomial bounds and rates over many runs."""
