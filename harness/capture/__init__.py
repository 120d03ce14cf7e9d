"""Watching a run from outside: packets on each host's interface, counters in each cnc file.

Nothing here changes what it watches: the mapping is read-only and the sniffer only listens.
"""
