"""Frames that carry a number, as stored in a log."""

import struct

DATA, PAD = 1, 0


def frame(number: int, length: int = 8, kind: int = DATA, content: bytes = b"") -> bytes:
    """Return one frame whose payload of `length` bytes is `number`, then the rest of `content`."""
    payload = (struct.pack("<q", number) + content[8:]).ljust(length, b"\xee")[:length]
    made = struct.pack("<iBBH24x", 32 + length, 0, 0xC0, kind) + payload
    return made.ljust(-(-len(made) // 32) * 32, b"\0")
