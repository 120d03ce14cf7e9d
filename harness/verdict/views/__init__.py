"""Views of the evidence shared by several checks: coverage, losses, series, sessions, pauses."""
