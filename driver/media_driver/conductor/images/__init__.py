"""Subscriptions and images: created on SETUP, linked to subscriptions, drained and removed."""
