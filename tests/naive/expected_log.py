"""Reference implementation of a publisher's expected log, frame by frame."""


def write_log(lengths, mtu, term_length, position=0):
    """Return [(position, type, frame length, flags, message, payload start)], and message ends."""
    frames, ends, written = [], [], 0
    for message, length in enumerate(lengths):
        parts = [mtu - 32] * (length // (mtu - 32))
        if length % (mtu - 32) or length == 0:
            parts.append(length % (mtu - 32))
        needed = sum((part + 32 + 31) // 32 * 32 for part in parts)
        room = term_length - position % term_length
        if needed > room:
            frames.append((position, "PAD", room, 0xC0, -1, 0))
            position += room
        for number, part in enumerate(parts):
            flags = (0x80 if number == 0 else 0) + (0x40 if number == len(parts) - 1 else 0)
            frames.append((position, "DATA", part + 32, flags, message, written))
            written += part
            position += (part + 32 + 31) // 32 * 32
        ends.append(position)
    return frames, ends
