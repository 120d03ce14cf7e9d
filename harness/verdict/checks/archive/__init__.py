"""Checks of recordings and replays."""
