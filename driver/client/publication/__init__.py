"""Concurrent and exclusive publications, with offers and claims."""
