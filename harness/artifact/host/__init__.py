"""Files of each host in a run folder: counters, offers, deliveries, logs, statistics."""
