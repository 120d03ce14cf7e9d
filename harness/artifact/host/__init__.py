"""Files about each host in a run folder: counters, offers, deliveries, logs and statistics."""
