"""Checks of streams that applications send, whose content and lifetime nobody here has planned."""
