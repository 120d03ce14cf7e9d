"""Observation of a run: packets on each host's interface, and counters in each driver's cnc file.

The observed processes are not affected: the cnc file is mapped read-only and the sniffer is
passive.
"""
