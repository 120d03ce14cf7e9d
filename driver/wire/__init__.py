"""Flyweights for the frames that are sent over UDP, with one module per frame type.

A flyweight has its field offsets, a `check`, a getter per field with arguments `(buf, at)`, and a
`write` that writes the whole frame and returns its length. A datagram must pass `header.check` and
then the `check` of its type; the getters do not check again. All integers are little-endian.

A new type of frame needs a module here, its code in `frame_type`, golden bytes, a reference
implementation in `tests/naive`, a row in the judge's own table, a scapy layer, and a scenario.

Not supported: transport-security frames and extension headers, which every open-source driver
counts as invalid.
"""
