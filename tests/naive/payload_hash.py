"""Reference implementation of XXH64 with Python integers."""

MASK = (1 << 64) - 1
P1, P2, P3 = 11400714785074694791, 14029467366897019727, 1609587929392839161
P4, P5 = 9650029242287828579, 2870177450012600261


def _rotated(value, bits):
    return (value << bits | value >> (64 - bits)) & MASK


def _round(lane, word):
    return _rotated((lane + word * P2) & MASK, 31) * P1 & MASK


def payload_hash(data: bytes) -> int:
    """Return XXH64 with seed 0, unsigned."""
    at = 0
    total = P5
    if len(data) >= 32:
        lanes = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
        while at + 32 <= len(data):
            for index in range(4):
                word = int.from_bytes(data[at + 8 * index : at + 8 * index + 8], "little")
                lanes[index] = _round(lanes[index], word)
            at += 32
        total = sum(map(_rotated, lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            total = ((total ^ _round(0, lane)) * P1 + P4) & MASK
    total = (total + len(data)) & MASK
    while at + 8 <= len(data):
        word = int.from_bytes(data[at : at + 8], "little")
        total = (_rotated(total ^ _round(0, word), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= len(data):
        word = int.from_bytes(data[at : at + 4], "little")
        total = (_rotated(total ^ word * P1 & MASK, 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        total = _rotated(total ^ byte * P5 & MASK, 11) * P1 & MASK
    total = (total ^ total >> 33) * P2 & MASK
    total = (total ^ total >> 29) * P3 & MASK
    return total ^ total >> 32
