"""Where a stream goes: `aeron:` URIs, the addresses in them, and what they ask of a stream.

Everything here is an immutable value. Nothing here opens a socket; names are resolved by whoever is
handed in.
"""
