"""Checks of the driver under test, by topic."""
