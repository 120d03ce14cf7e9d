"""Reference implementation of the capture reader for Ethernet and IPv4, packet by packet."""

import struct

NAMES = {0: "PAD", 1: "DATA", 2: "NAK", 3: "SM", 4: "ERR", 5: "SETUP", 6: "RTTM", 7: "RES"}
NAMES[11] = "RSP_SETUP"
SHORTEST = {"PAD": 32, "DATA": 32, "NAK": 28, "SM": 36, "ERR": 40, "SETUP": 40, "RTTM": 40}
SHORTEST |= {"RES": 8, "RSP_SETUP": 20}


def split(datagram):
    """Return [(class name, offset in the datagram)] of one UDP payload."""
    if len(datagram) < 8:
        return [("MALFORMED", 0)]
    length, version, _, code = struct.unpack_from("<iBBH", datagram)
    if version != 0 or length < 0:
        return [("MALFORMED", 0)]
    if code not in NAMES:
        return [("OTHER", 0)]
    name = NAMES[code]
    if len(datagram) < SHORTEST[name]:
        return [("MALFORMED", 0)]
    if name == "DATA" and length == 0:
        return [("HEARTBEAT" if len(datagram) == 32 else "MALFORMED", 0)]
    if name not in ("DATA", "PAD"):
        return [(name, 0)]
    frames, at = [], 0
    while at < len(datagram):
        name, span = next_frame(datagram[at:])
        frames.append((name, at))
        if name != "DATA":
            break
        at += span
    return frames


def next_frame(rest):
    """Return (class name, length in bytes) of the DATA or PAD frame at the start of `rest`."""
    if len(rest) < 32:
        return "MALFORMED", 0
    length, version, _, code = struct.unpack_from("<iBBH", rest)
    span = (length + 31) // 32 * 32
    if version == 0 and code == 1 and length >= 32 and span <= len(rest):
        return "DATA", span
    if version == 0 and code == 0 and length >= 32 and len(rest) == 32:
        return "PAD", 32
    return "MALFORMED", 0


def read(capture):
    """Return [(time in ns, datagram, class name, source port)] of a microsecond capture."""
    found, at = [], 24
    while at + 16 <= len(capture):
        seconds, microseconds, size, _ = struct.unpack_from("<IIII", capture, at)
        packet = capture[at + 16 : at + 16 + size]
        at += 16 + size
        header = (packet[14] & 15) * 4
        source, _, length, _ = struct.unpack_from(">HHHH", packet, 14 + header)
        datagram = packet[14 + header + 8 : 14 + header + length]
        time_ns = (seconds * 1_000_000 + microseconds) * 1000
        found += [(time_ns, datagram[offset:], name, source) for name, offset in split(datagram)]
    return found
