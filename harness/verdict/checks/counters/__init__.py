"""Checks that compare the driver's counters with captures and positions."""
