"""Starts, supervises and ends the applications of a scenario."""
