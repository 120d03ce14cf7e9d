"""The Spark engine: its session, its DataFrames, its batches of frames."""
