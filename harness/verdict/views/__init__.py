"""Evidence prepared for several checks: coverage, losses, series, sessions, pauses."""
