"""The driver's loss-report.dat: what each image lost.

    0       8       16        24       32       36      40        44
    +-------+-------+---------+--------+--------+-------+---------+---------+--------+---------+---
    | count | bytes | first   | last   | session| stream| length  | channel | length | source  | 0
    +-------+-------+---------+--------+--------+-------+---------+---------+--------+---------+---
                                                                   aligned to 4       to 64, next

A count of zero ends the list, and is written last when an entry is made. Works on a live file and a
saved one alike. Source: specification section 10.6.
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
    """What one image lost since it began."""

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
    """All entries in the order in which images first lost something."""

    losses: list[Loss]
    problem: str
    "What is wrong with the bytes behind the last entry; empty when nothing is."


def read_loss_report(buf: NDArray[np.uint8]) -> LossReport:
    """All entries up to the end of the list, or up to the first that cannot be one."""
    losses: list[Loss] = []
    at = 0
    while at + ENTRY.itemsize <= len(buf):
        entry = buf[at : at + ENTRY.itemsize].view(ENTRY)[0]
        if entry["observation_count"] <= 0:
            break
        channel = _text(buf, at + ENTRY.itemsize)
        source = _text(buf, channel[1]) if channel else None
        if channel is None or source is None:
            return LossReport(losses, f"entry {len(losses)} at {at}: a text runs past the end")
        numbers = {name: int(entry[name]) for name in ENTRY.names or ()}
        losses.append(Loss(channel=channel[0], source=source[0], **numbers))
        at = _aligned(source[1], ENTRY_ALIGNMENT)
    return LossReport(losses, "")


def _text(buf: NDArray[np.uint8], at: int) -> tuple[str, int] | None:
    """A text behind its length, and where what follows it begins; None when it does not fit."""
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
