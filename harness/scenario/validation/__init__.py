"""Validation rules that involve several tables: well-formed scenarios that cannot work."""
