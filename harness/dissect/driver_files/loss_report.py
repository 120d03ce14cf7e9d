"""Parser for a driver's loss-report.dat: the data loss of each image.

    0       8       16        24       32       36      40        44
    +-------+-------+---------+--------+--------+-------+---------+---------+--------+---------+---
    | count | bytes | first   | last   | session| stream| length  | channel | length | source  | 0
    +-------+-------+---------+--------+--------+-------+---------+---------+--------+---------+---
                                                                   aligned to 4       to 64, next

A count of zero ends the list. The count of an entry is written last. The parser reads live and
saved files. Source: specification section 10.6.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ENTRY_ALIGNMENT = 64
TEXT_ALIGNMENT = 4

ENTRY = np.dtype(
    [
        ("observation_count", "<i8"),
        ("bytes_lost", "<i8"),
        ("first_ms", "<i8"),
        ("last_ms", "<i8"),
        ("session_id", "<i4"),
        ("stream_id", "<i4"),
    ]
)


@dataclass(frozen=True)
class Loss:
    """An entry of the loss report: the data loss of an image since its creation."""

    observation_count: int
    bytes_lost: int
    first_ms: int
    last_ms: int
    session_id: int
    stream_id: int
    channel: str
    source: str


@dataclass(frozen=True)
class LossReport:
    """All entries of a loss report, in order of each image's first loss."""

    losses: list[Loss]
    problem: str
    "The error after the last entry, or an empty string."


def read_loss_report(buf: NDArray[np.uint8]) -> LossReport:
    """Parse a loss report up to the end of the list, or up to the first invalid entry."""
    losses: list[Loss] = []
    at = 0
    while at + ENTRY.itemsize <= len(buf):
        entry = buf[at : at + ENTRY.itemsize].view(ENTRY)[0]
        if entry["observation_count"] <= 0:
            break
        channel = _text(buf, at + ENTRY.itemsize)
        source = _text(buf, channel[1]) if channel else None
        if channel is None or source is None:
            text = f"entry {len(losses)} at {at}: a string exceeds the end of the file"
            return LossReport(losses, text)
        numbers = {name: int(entry[name]) for name in ENTRY.names or ()}
        losses.append(Loss(channel=channel[0], source=source[0], **numbers))
        at = _aligned(source[1], ENTRY_ALIGNMENT)
    return LossReport(losses, "")


def _text(buf: NDArray[np.uint8], at: int) -> tuple[str, int] | None:
    """Read a length-prefixed string. Returns the string and the offset after it, or None if the
    string exceeds the buffer.
    """
    start = at + 4
    if start > len(buf):
        return None
    length = int(buf[at:start].view("<i4")[0])
    if length < 0 or length > len(buf) - start:
        return None
    text = buf[start : start + length].tobytes().decode("utf-8", "replace")
    return text, _aligned(start + length, TEXT_ALIGNMENT)


def _aligned(length: int, alignment: int) -> int:
    return (length + alignment - 1) // alignment * alignment
