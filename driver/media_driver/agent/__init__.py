"""The agents of a media driver: duty cycles, their threads, queues and counters."""
