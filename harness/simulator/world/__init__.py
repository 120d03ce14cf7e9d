"""Hosts, their agents and one virtual clock, stepped turn by turn."""
