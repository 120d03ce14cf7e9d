"""Aeron frames: layout tables, splitting of datagrams, positions, strict validation."""
