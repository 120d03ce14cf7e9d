"""Reference implementation of the comparison of delivered with planned messages."""


def first_wrong_message(messages, payload, lengths, planned_starts):
    """Return (message, byte) of the first difference, or (-1, -1)."""
    at = 0
    for message, (length, start) in enumerate(zip(lengths, planned_starts, strict=True)):
        found = messages[at : at + length]
        expected = bytes(payload[(start + index) % len(payload)] for index in range(length))
        for byte, pair in enumerate(zip(found, expected, strict=True)):
            if pair[0] != pair[1]:
                return message, byte
        at += length
    return -1, -1
