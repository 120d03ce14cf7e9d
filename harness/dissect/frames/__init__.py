"""Aeron frames: layout tables, splitting datagrams, positions, strict validation."""
