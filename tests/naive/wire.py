"""Reference implementation of the frame codecs, with `struct`."""

import struct

HEADER = "<iBBH"
FORMATS = {
    "data": "<iBBHiiiiq",
    "setup": "<iBBHiiiiiiii",
    "status_message": "<iBBHiiiiiq",
    "status_message_tagged": "<iBBHiiiiiqq",
    "nak": "<iBBHiiiii",
    "rtt_measurement": "<iBBHiiqqq",
    "error": "<iBBHiiqqii",
    "response_setup": "<iBBHiii",
}
PAD, DATA, NAK, SM, ERR, SETUP, RTTM, RES, RSP_SETUP = 0, 1, 2, 3, 4, 5, 6, 7, 11
MINIMUM = {PAD: 32, DATA: 32, NAK: 28, SM: 36, ERR: 40, SETUP: 40, RTTM: 40, RES: 22, RSP_SETUP: 20}


def pack(kind: str, *values: int) -> bytes:
    """Return a frame of this type from its fields in the order of the format, header first."""
    return struct.pack(FORMATS[kind], *values)


def is_acceptable(datagram: bytes) -> bool:
    """Return whether the first validation of a datagram accepts it."""
    if len(datagram) < 8:
        return False
    length, version, _, kind = struct.unpack_from(HEADER, datagram)
    if length < 0 or version != 0 or kind not in MINIMUM or len(datagram) < MINIMUM[kind]:
        return False
    if kind in (PAD, DATA):
        return len(datagram) % 32 == 0
    return length <= len(datagram)


def aligned(length: int) -> int:
    """Return the next multiple of 32."""
    return -(-length // 32) * 32


def reach(datagram: bytes, term_length: int) -> int:
    """Return by how much a data datagram advances its stream; -1 if it must be rejected."""
    start = struct.unpack_from("<i", datagram, 8)[0]
    if start not in range(0, term_length, 32):
        return -1
    if len(datagram) == 32 and struct.unpack_from("<i", datagram)[0] == 0:
        return 0
    at, kind = 0, None
    while at + 32 <= len(datagram):
        length, _, _, kind, offset = struct.unpack_from("<iBBHi", datagram, at)
        if length < 1 or kind not in (PAD, DATA) or offset != start + at:
            return -1
        at += aligned(length)
        if start + at > term_length:
            return -1
    if at == len(datagram) or (kind == PAD and at > len(datagram)):
        return at
    return -1
