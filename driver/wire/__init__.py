"""Frames as they travel over UDP: one flyweight module for each kind of frame.

A flyweight has its offsets on top, then `check`, then a getter for every field taking `(buf, at)`,
and one `write` that writes the whole frame and returns its length. A datagram passes `header.check`
first, then the `check` of its own kind; every accessor after that trusts the caller. All integers
are little-endian.

A new kind of frame touches seven places: a module here, its code in `frame_type`, golden bytes, a
naive twin, a row in the judge's own table, a scapy layer, and a scenario.

Not covered: transport-security frames and extension headers, which every open driver counts as
invalid.
"""
