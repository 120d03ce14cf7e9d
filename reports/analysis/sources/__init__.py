"""Spark data sources and tables for run folders and archives."""
