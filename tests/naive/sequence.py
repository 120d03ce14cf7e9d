"""Reference implementation of the check of numbered messages in a block of frames."""

import struct

PAD = 0


def check_block(block: bytes, expected: int, message_length: int) -> tuple[int, str, int]:
    """Return (next expected number, `ok` or the error, the value found)."""
    at = 0
    while at < len(block):
        length, _, _, kind = struct.unpack_from("<iBBH", block, at)
        if length < 32:
            return expected, "broken frame", length & 0xFFFFFFFF
        if kind != PAD:
            payload = block[at + 32 : at + length]
            if length - 32 != message_length or len(payload) < message_length:
                return expected, "length", length - 32
            (number,) = struct.unpack_from("<q", payload)
            if number != expected:
                return expected, "sequence", number
            expected += 1
        at += -(-length // 32) * 32
    return expected, "ok", 0
