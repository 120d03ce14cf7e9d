"""Checks of NAKs, retransmits and loss recovery."""
