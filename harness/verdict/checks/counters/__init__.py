"""Checks of the driver's counters against captures and positions."""
