"""The Spark analysis engine: session, DataFrames and SQL views."""
