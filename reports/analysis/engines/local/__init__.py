"""The local analysis engine: one process, without Spark."""
