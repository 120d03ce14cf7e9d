"""Forged frames: bytes that are built by scapy in advance and patched with the live stream's
values.

TEMPLATE   where its bytes lie, and the position that it claims
PATCH      a field whose value comes from the stream: its session, its term id, ...

claimed position = the followed frame's position + advance, or the end of its term + term_end
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox.decision import NO_POSITION

SOURCES: tuple[str, ...] = (
    "session_id",
    "stream_id",
    "term_id",
    "term_offset",
    "receiver_id",
    "initial_term_id",
    "term_length",
)
"""Sources of a patch's value. The index is `PATCH.source`; the names come from `forged_frames`."""

_SESSION_ID, _STREAM_ID, _TERM_ID, _TERM_OFFSET, _RECEIVER_ID, _INITIAL, _LENGTH = range(7)

OTHER = 0x2B5D_11F7
"""Number that is added to an id to get an id that is not in use."""

TEMPLATE = np.dtype(
    [
        ("at", "<i8"),  # offset of its first byte among those of all templates
        ("length", "<i8"),
        ("advance", "<i8"),
        ("from_term_end", "<i8"),  # 1: `term_end` applies instead of `advance`
        ("term_end", "<i8"),
        ("shift", "<i8"),
        ("term", "<i8"),
        ("is_same_session", "<i8"),
        ("is_same_stream", "<i8"),
        ("is_same_receiver", "<i8"),
        ("first_patch", "<i8"),
        ("patches", "<i8"),
    ]
)

PATCH = np.dtype(
    [
        ("offset", "<i8"),  # in the frame
        ("width", "<i8"),  # 4 or 8 bytes
        ("source", "<i8"),
    ]
)


@kernel
def claimed_place(
    template: Any, place: int, term_id: int, term_offset: int, initial_term_id: int, length: int
) -> tuple[int, int]:
    """Return the term id and term offset to write into a forged frame.

    `place` is the position of the frame that the forged frame follows, or NO_POSITION. `length` is
    the term length, or 0 if it is unknown.
    """
    if place != NO_POSITION and length > 0:
        if template["from_term_end"] != 0:
            position = place - place % length + length + template["term_end"]
        else:
            position = place + template["advance"]
        term_id = initial_term_id + position // length
        term_offset = position % length
        if template["from_term_end"] != 0 and template["term_end"] >= 0:
            # This offset is past the end of the frame's term, which no position can express.
            term_id = initial_term_id + place // length
            term_offset = length + template["term_end"]
    return term_id + template["term"], term_offset + template["shift"]


@kernel
def fill_in(buf: Any, at: int, template: Any, patches: Any, values: Any) -> None:
    """Write the live stream's values into the forged frame at offset `at`.

    Shapes: buf uint8[n]; patches PATCH[m]; values int64[len(SOURCES)]
    """
    for index in range(template["first_patch"], template["first_patch"] + template["patches"]):
        patch = patches[index]
        value = int(values[patch["source"]])
        for byte in range(patch["width"]):
            buf[at + patch["offset"] + byte] = value >> 8 * byte & 0xFF


@kernel
def set_values(
    values: Any, template: Any, row: Any, place: int, initial_term_id: int, length: int
) -> None:
    """Compute the field values of a forged frame from the frame that it follows in the live stream.

    Shapes: values int64[len(SOURCES)]; row FRAME
    """
    term_id, term_offset = claimed_place(
        template, place, int(row["term_id"]), int(row["term_offset"]), initial_term_id, length
    )
    values[_SESSION_ID] = row["session_id"] + (0 if template["is_same_session"] else OTHER)
    values[_STREAM_ID] = row["stream_id"] + (0 if template["is_same_stream"] else OTHER)
    values[_TERM_ID] = term_id
    values[_TERM_OFFSET] = term_offset
    values[_RECEIVER_ID] = row["receiver_id"] + (0 if template["is_same_receiver"] else OTHER)
    values[_INITIAL] = initial_term_id
    values[_LENGTH] = length
