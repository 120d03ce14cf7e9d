"""Reference implementation of the frame parser: dictionaries, by the specification's tables."""

import struct

from tests.naive.payload_hash import payload_hash

TERM_FRAMES = {0: "PAD", 1: "DATA"}


def frames(payload: bytes) -> list[dict]:
    """Return all frames of a valid datagram, by the column names of the table of frames."""
    found, at = [], 0
    while at < len(payload):
        length, _, flags, kind = struct.unpack_from("<iBBH", payload, at)
        row = {"frame_length": length, "flags": flags, "frame_index": len(found)}
        if kind in TERM_FRAMES:
            names = ("term_offset", "session_id", "stream_id", "term_id", "reserved_value")
            row |= dict(zip(names, struct.unpack_from("<iiiiq", payload, at + 8), strict=True))
            row["frame_type"] = TERM_FRAMES[kind] if length else "HEARTBEAT"
            if row["frame_type"] == "DATA":
                unsigned = payload_hash(payload[at + 32 : at + length])
                row["payload_hash"] = unsigned - (unsigned >> 63 << 64)
                at += length + -length % 32
            else:
                at += 32
        else:
            row |= _control(kind, length, payload)
            at = len(payload)
        found.append(row)
    return found


def _control(kind: int, length: int, payload: bytes) -> dict:
    name, names, form = {
        2: ("NAK", "session_id stream_id term_id term_offset nak_length", "<5i"),
        3: ("SM", "session_id stream_id term_id term_offset window_bytes receiver_id", "<5iq"),
        4: ("ERR", "session_id stream_id receiver_id group_tag error_code", "<iiqqi"),
        5: (
            "SETUP",
            "term_offset session_id stream_id initial_term_id term_id term_length mtu ttl",
            "<8i",
        ),
        6: (
            "RTTM",
            "session_id stream_id echo_timestamp_ns reception_delta_ns receiver_id",
            "<iiqqq",
        ),
        11: ("RSP_SETUP", "session_id stream_id response_session_id", "<3i"),
    }[kind]
    row = dict(zip(names.split(), struct.unpack_from(form, payload, 8), strict=True))
    row["frame_type"] = name
    if kind == 3 and length == 44:
        row["group_tag"] = struct.unpack_from("<q", payload, 36)[0]
    if kind == 4:
        row["error_text"] = payload[40:].decode()
        if not payload[5] & 8:
            del row["group_tag"]
    return row
