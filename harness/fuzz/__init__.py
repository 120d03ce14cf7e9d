"""Attacks a running driver with hostile input, and checks that streams that are not attacked stay
intact.
"""
