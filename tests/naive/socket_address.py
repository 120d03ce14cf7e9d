"""Reference implementation of `driver.channel.socket_address`, with `bytes` and `struct`."""

import struct


def is_name(name: bytes) -> bool:
    return fields(name) is not None


def fields(name: bytes) -> tuple[int, int, bytes, int] | None:
    """Return family, port, address and scope id, or None if the bytes are no socket address."""
    if len(name) == 16 and name[:2] == struct.pack("=H", 2):
        return 2, struct.unpack(">H", name[2:4])[0], name[4:8], 0
    if len(name) == 28 and name[:2] == struct.pack("=H", 10):
        return 10, struct.unpack(">H", name[2:4])[0], name[8:24], struct.unpack("=I", name[24:])[0]
    return None


def same(one: bytes, other: bytes) -> bool:
    mine, theirs = fields(one), fields(other)
    return mine is not None and mine == theirs


def same_host(one: bytes, other: bytes) -> bool:
    mine, theirs = fields(one), fields(other)
    if mine is None or theirs is None:
        return False
    return (mine[0], mine[2], mine[3]) == (theirs[0], theirs[2], theirs[3])
