"""Reference implementation of the comparison of a segment file with the expected frames."""

import struct


def frame_of(row, payload: bytes, identity) -> bytes:
    """Return the expected bytes of a frame; for padding the header only."""
    session_id, stream_id, initial_term_id, term_length = identity
    position, length = int(row["position"]), int(row["frame_length"])
    term_id = (initial_term_id + position // term_length) & 0xFFFFFFFF
    head = struct.pack(
        "<iBBHiiiIq", length, 0, int(row["flags"]), int(row["frame_type"]),
        position % term_length, session_id, stream_id, term_id, 0,
    )  # fmt: skip
    if row["frame_type"] == 0:
        return head
    start = int(row["payload_start"])
    return head + bytes(payload[(start + i) % len(payload)] for i in range(length - 32))


def first_wrong_frame(file: bytes, base: int, rows, payload: bytes, identity):
    """Return (frame, byte), or (-1, -1); a wrong header field counts from its first byte."""
    fields = (0, 4, 5, 6, 8, 12, 16, 20, 24, 32)
    for index, row in enumerate(rows):
        expected = frame_of(row, payload, identity)
        at = int(row["position"]) - base
        found = file[at : at + len(expected)]
        if len(found) < len(expected):
            return index, max(0, len(file) - at)
        pairs = enumerate(zip(found, expected, strict=True))
        wrong = [byte for byte, (left, right) in pairs if left != right]
        if wrong:
            byte = wrong[0]
            return index, byte if byte >= 32 else max(each for each in fields if each <= byte)
    return -1, -1
