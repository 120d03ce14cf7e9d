"""Impairments of whole packets, such as loss, delay and rate limits, after the fault rules."""
