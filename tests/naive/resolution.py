"""Reference implementation of name resolution frames, with `struct`."""

import ipaddress
import struct


def frame(*entries: bytes) -> bytes:
    content = b"".join(entries)
    return struct.pack("<iBBH", 8 + len(content), 0, 0, 7) + content


def entry(name: bytes, host: str, port: int, age_ms: int = 0, flags: int = 0) -> bytes:
    packed = ipaddress.ip_address(host).packed
    kind = 1 if len(packed) == 4 else 2
    content = struct.pack("<bBHi", kind, flags, port, age_ms) + packed
    content += struct.pack("<h", len(name)) + name
    while len(content) % 8:
        content += b"\0"
    return content


def read(datagram: bytes) -> tuple[list[tuple[bytes, str, int, int, bool]], str]:
    """Return (name, host, port, age, is self) entries, and `ok`, `invalid` or `unknown type`."""
    if len(datagram) < 8 or datagram[4] != 0 or datagram[6:8] != b"\7\0":
        return [], "invalid"
    found, rest = [], datagram[8:]
    while rest:
        if len(rest) < 8:
            return found, "invalid"
        kind, flags, port, age_ms = struct.unpack_from("<BBHi", rest)
        if kind not in (1, 2):
            return found, "unknown type"
        address_end = 12 if kind == 1 else 24
        if len(rest) < address_end + 2:
            return found, "invalid"
        (name_length,) = struct.unpack_from("<H", rest, address_end)
        end = address_end + 2 + name_length
        if name_length > 512 or len(rest) < end:
            return found, "invalid"
        host = str(ipaddress.ip_address(rest[8:address_end]))
        name = rest[address_end + 2 : end]
        found.append((name, host, port, max(0, age_ms), flags >= 0x80))
        rest = rest[-(-end // 8) * 8 :]
    return found, "ok"
