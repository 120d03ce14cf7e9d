"""One run: its specification, its phases, its traffic, its events."""
