"""Checks of streams that applications send, whose content and lifetime are not planned."""
