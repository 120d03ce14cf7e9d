"""The Spark engine: session, DataFrames and SQL views."""
