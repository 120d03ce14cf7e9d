"""Checks of the time between an event and what must follow it."""
