"""Impairments of whole packets, behind the fault rules: loss, delay, rate, copies, damage."""
