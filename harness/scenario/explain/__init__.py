"""Descriptions of resolved scenarios for `windtunnel explain`."""
