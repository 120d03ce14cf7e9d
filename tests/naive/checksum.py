"""Reference implementation of the checksums of IP and UDP."""

import struct


def folded(data):
    data = bytes(data) + bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def complete(packet, ip_at, finished):
    """Fill in the checksums of a packet; if not `finished`, the UDP one is the pseudo-header's."""
    packet = bytearray(packet)
    is_v4 = packet[ip_at] >> 4 == 4
    udp_at = ip_at + (20 if is_v4 else 40)
    if is_v4:
        packet[ip_at + 10 : ip_at + 12] = b"\0\0"
        struct.pack_into(">H", packet, ip_at + 10, 0xFFFF ^ folded(packet[ip_at:udp_at]))
    length = struct.unpack_from(">H", packet, udp_at + 4)[0]
    addresses = packet[ip_at + (12 if is_v4 else 8) : udp_at]
    pseudo = bytes(addresses) + struct.pack(">HH", 17, length)
    packet[udp_at + 6 : udp_at + 8] = b"\0\0"
    value = folded(pseudo)
    if finished:
        value = 0xFFFF ^ folded(pseudo + packet[udp_at : udp_at + length])
    struct.pack_into(">H", packet, udp_at + 6, value)
    return packet
