"""Checks of the messages that subscribers received: complete, once, in order, intact."""
