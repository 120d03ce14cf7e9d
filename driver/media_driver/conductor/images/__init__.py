"""Subscriptions, and the images that are created on SETUP and linked to them."""
