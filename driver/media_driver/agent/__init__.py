"""Code that all agents use: duty cycle measurement, threads, queues and system counters."""
