"""Sockets: how frames leave for the network and arrive from it, in batches."""
