"""Binomial and Markov chain bounds, and failure rates over many runs."""
