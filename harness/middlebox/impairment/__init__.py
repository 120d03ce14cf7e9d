"""Impairments of whole packets, after the fault rules: loss, delay, rate, duplication,
corruption.
"""
