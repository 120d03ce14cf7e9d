"""Swarm trials: a seed selects each trial's streams, configuration, traffic and faults."""
