"""Spark data sources for captures, run folders and archives, and their tables."""
