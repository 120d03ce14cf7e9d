"""Swarm trials: a seed selects streams, configuration, traffic and faults."""
