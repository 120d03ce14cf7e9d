"""Clients that use one feature of their drivers and verify what they observe."""
