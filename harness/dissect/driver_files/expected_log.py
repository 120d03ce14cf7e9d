"""The expected log buffer of a single publisher: all frames, computed from the traffic plan alone.

    term 0                                                              term 1
    | B--- m0 ---E | BE m1 | B--- m2 ---| ---- | --- m2 --E | PAD      | BE m3 | ...
                                                              m3 did not fit in the rest of term 0

A message is split into fragments of at most mtu - 32 payload bytes. The frames of a message are
contiguous within one term. If a message does not fit, a PAD fills the rest of the term. Concurrent
and exclusive publications write the same log if only one thread offers. Source: specification
section 2.6.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox.frame_class import DATA, PAD
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH, aligned
from windtunnel.harness.dissect.frames.layout import FLAG_BEGIN, FLAG_END, FLAG_UNFRAGMENTED

NO_MESSAGE = -1

EXPECTED_FRAME = np.dtype(
    [
        ("position", "<i8"),  # position of the first byte
        ("message", "<i8"),  # message index in the plan, or NO_MESSAGE for a PAD
        ("payload_start", "<i8"),  # offset in the repeated payload, or 0 for a PAD
        ("frame_length", "<i4"),  # includes the header; not aligned
        ("flags", "u1"),
        ("frame_type", "<u2"),  # DATA or PAD
    ]
)

_DATA, _PAD, _HEADER = DATA, PAD, DATA_HEADER_LENGTH
_BEGIN, _END, _UNFRAGMENTED = FLAG_BEGIN, FLAG_END, FLAG_UNFRAGMENTED


@dataclass(frozen=True)
class ExpectedLog:
    """All frames of an expected log by position, and the end of each message."""

    frames: NDArray[Any]
    message_ends: NDArray[np.int64]
    "Position after each message: the return value of the message's offer."
    start_position: int
    end_position: int


@kernel
def framed_length(length: int, payload_max: int) -> int:
    """Return the number of bytes that a message occupies in a term, with headers and alignment."""
    rest = length % payload_max
    framed = length // payload_max * aligned(payload_max + _HEADER)
    return framed + aligned(rest + _HEADER) if rest or length == 0 else framed


@kernel
def _put(
    rows: Any,
    count: int,
    position: int,
    message: int,
    payload_start: int,
    frame_length: int,
    flags: int,
    frame_type: int,
) -> None:
    if count >= len(rows):
        return
    row = rows[count]
    row["position"] = position
    row["message"] = message
    row["payload_start"] = payload_start
    row["frame_length"] = frame_length
    row["flags"] = flags
    row["frame_type"] = frame_type


@kernel
def lay_out(
    lengths: Any, mtu: int, term_length: int, start_position: int, ends: Any, rows: Any
) -> int:
    """Compute the frames of all messages from `start_position` on.

    Shapes:  lengths, ends int64[m]; rows EXPECTED_FRAME[n]
    Returns: the number of frames; rows beyond n are counted but not written
    """
    payload_max = mtu - _HEADER
    position = start_position
    start = 0
    count = 0
    for message in range(len(lengths)):
        length = lengths[message]
        left = term_length - position % term_length
        if framed_length(length, payload_max) > left:
            _put(rows, count, position, -1, 0, left, _UNFRAGMENTED, _PAD)
            count += 1
            position += left
        done = 0
        while True:
            part = min(payload_max, length - done)
            flags = (_BEGIN if done == 0 else 0) | (_END if done + part == length else 0)
            _put(rows, count, position, message, start + done, part + _HEADER, flags, _DATA)
            count += 1
            position += aligned(part + _HEADER)
            done += part
            if done == length:
                break
        ends[message] = position
        start += length
    return count


def expected_log(
    lengths: NDArray[np.int64], mtu: int, term_length: int, start_position: int = 0
) -> ExpectedLog:
    """Return the log that a publication must write for messages of the given lengths.

    The payloads are consecutive parts of one byte sequence. Raises ValueError if no publication
    could write this log.
    """
    if mtu <= DATA_HEADER_LENGTH or mtu % 32 or term_length % 32:
        text = "expected an mtu above 32 and multiples of 32"
        raise ValueError(f"{text}, found mtu {mtu} and term length {term_length}")
    longest = int(lengths.max(initial=0))
    if framed_length(longest, mtu - DATA_HEADER_LENGTH) > term_length:
        raise ValueError(f"a message of {longest} bytes does not fit in a term of {term_length}")
    ends = np.zeros(len(lengths), dtype=np.int64)
    rows = np.zeros(0, dtype=EXPECTED_FRAME)
    count = lay_out(lengths, mtu, term_length, start_position, ends, rows)
    rows = np.zeros(count, dtype=EXPECTED_FRAME)
    lay_out(lengths, mtu, term_length, start_position, ends, rows)
    end_position = int(ends[-1]) if len(ends) else start_position
    return ExpectedLog(rows, ends, start_position, end_position)
