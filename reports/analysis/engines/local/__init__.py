"""The local engine: one process, no Spark."""
