"""Writing: shared and exclusive publications, claims and offers."""
