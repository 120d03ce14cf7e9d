"""Sentences about what the applications of a run saw, for the terminal and the report."""
