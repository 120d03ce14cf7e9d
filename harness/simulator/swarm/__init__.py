"""Swarm trials: a seed chooses streams, configuration, traffic and faults."""
