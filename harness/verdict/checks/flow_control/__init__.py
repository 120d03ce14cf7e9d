"""Checks of status messages, windows, limits and heartbeats."""
