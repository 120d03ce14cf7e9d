"""A resolved scenario in words."""
