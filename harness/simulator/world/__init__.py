"""Simulated hosts and a virtual clock, advanced turn by turn."""
