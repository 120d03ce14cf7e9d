"""Data that several checks derive from the evidence: coverage, losses, series, sessions, pauses."""
