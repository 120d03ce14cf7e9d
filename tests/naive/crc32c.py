"""Reference implementation of CRC-32 and CRC-32C, one bit at a time."""


def crc(polynomial, content):
    """Return the checksum for a reflected polynomial, as a signed 32-bit integer."""
    value = 0xFFFFFFFF
    for byte in bytes(content):
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
