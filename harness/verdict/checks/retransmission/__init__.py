"""Checks of NAKs, retransmits and recovery from loss."""
