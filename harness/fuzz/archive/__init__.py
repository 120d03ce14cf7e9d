"""Attacks a running archive with hostile requests, kills and damaged files, while the recordings of
a regular client are checked.
"""
