"""Spark data sources for captures, run folders and archives, and the tables they provide."""
