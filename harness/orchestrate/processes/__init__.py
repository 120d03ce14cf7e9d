"""Processes: starting, forking, watching, signalling and reaping them."""
