"""Checks of what subscribers received: complete, once, in order, intact."""
