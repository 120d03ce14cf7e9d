"""The relay of the middlebox: forwards packets between the hosts' interfaces through the rule
engine.
"""
