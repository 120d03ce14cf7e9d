"""Common code of the agents: duty cycle measurement, threads, queues and system counters."""
