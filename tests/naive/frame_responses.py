"""Reference implementation of the search for the responses to a frame that a fault rule matched."""

from typing import Any

RANGED = ("NAK", "DATA")


def responses(met: dict[str, Any], frames: list[dict[str, Any]], then: str) -> list[int]:
    """Return the times of all responses to one frame. `frames` were sent by the responding host."""
    times = []
    for frame in frames:
        kinds = ("DATA", "PAD") if then == "DATA" else (then,)
        if frame["type"] not in kinds or frame["time_ns"] <= met["time_ns"]:
            continue
        if (frame["stream_id"], frame["session_id"]) != (met["stream_id"], met["session_id"]):
            continue
        if then in RANGED and met["position"] >= 0:
            length = frame["nak_length"] if then == "NAK" else frame["frame_length"]
            covered = set(
                range(frame["term_offset"] // 32, (frame["term_offset"] + length + 31) // 32)
            )
            first = met["term_offset"] // 32
            wanted = set(range(first, first + met["frame_length"] // 32))
            if frame["term_id"] != met["term_id"] or not wanted <= covered:
                continue
        times.append(frame["time_ns"])
    return sorted(times)
