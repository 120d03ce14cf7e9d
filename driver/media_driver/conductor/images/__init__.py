"""Subscriptions, and the images that are created for SETUP frames and linked to subscriptions."""
