"""Statistics: binomial and Markov chain bounds, failure rates over many runs."""
