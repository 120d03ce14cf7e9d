"""Validation rules that involve several tables. They reject scenarios that cannot work."""
