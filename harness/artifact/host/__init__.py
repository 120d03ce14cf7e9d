"""What each host leaves in a run folder: counters, offers, deliveries, logs, statistics."""
