"""The two analysis engines, local and Spark, which return the same rows."""
