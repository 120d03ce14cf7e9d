"""The middlebox's decision log, with one record for each frame that a fault rule matched.

A record has the action on a frame, and an identity of the frame that is valid across runs:

    DATA, PAD with a position    link, class, stream, session by number, position, attempt
    any other                    link, class, stream, order of appearance

Logs from older versions have zeros in `session` and `order`, and cannot be replayed. `rule` is an
index into the case's `faults`.
"""

from pathlib import Path

import numpy as np

from windtunnel.harness.artifact.records import Records, has_torn_tail, read_records
from windtunnel.harness.artifact.regular_file import size_of

DROP = 1
DUPLICATE = 2
HOLD = 3
SWAP = 4
DISPLACE = 5
CORRUPT = 6
TRUNCATE = 7
INJECT = 8
READDRESS = 9
ACTIONS: dict[int, str] = {
    DROP: "drop",
    DUPLICATE: "duplicate",
    HOLD: "hold",
    SWAP: "swap",
    DISPLACE: "displace",
    CORRUPT: "corrupt",
    TRUNCATE: "truncate",
    INJECT: "inject",
    READDRESS: "readdress",
}

LINKS: tuple[str, str] = ("a->b", "b->a")
"""Names of link directions by code, where a and b are the case's first and second host."""

NO_POSITION = -1

DECISION = np.dtype(
    [
        ("time_ns", "<i8"),
        ("rule", "u1"),
        ("session", "u1"),  # number of the session on its stream, from 1; 0 without a position
        ("action", "u1"),
        ("link", "u1"),
        ("frame_type", "<u2"),  # a code of frame_class
        ("flags", "u1"),
        ("timing_sensitive", "u1"),  # 1: selected by order of appearance or time, not position
        ("session_id", "<i4"),
        ("stream_id", "<i4"),
        ("term_id", "<i4"),
        ("term_offset", "<i4"),
        ("frame_length", "<i4"),  # the frame's positional length, aligned to 32
        ("position", "<i8"),  # of the frame's first byte, or NO_POSITION
        ("attempt", "<i4"),  # 1 for the first transmission of this position in this link direction
        ("delay_ns", "<i8"),
        ("detail", "<i4"),  # corrupt: first flipped bit of the frame; truncate: bytes left
        ("order", "<i4"),  # among frames of its class, stream and link, from 1; 0 with a position
    ]
)

IDENTITY = ("link", "frame_type", "stream_id", "session", "position", "attempt", "order")
"""Fields that identify a decision's frame in any run with the same streams."""


def read_decisions(path: Path) -> Records | None:
    """Read all middlebox decisions in a run. Returns None if the log is missing."""
    return read_records(path, DECISION)


class DecisionLogError(ValueError):
    """Raised for a decision log that cannot be replayed. The message names the file and error."""


def torn_text(path: Path) -> str:
    """Return what is wrong with a log that ends inside a record, or "" if it does not."""
    if not has_torn_tail(path, DECISION):
        return ""
    return (
        f"expected a multiple of {DECISION.itemsize} bytes, found {size_of(path)}: the log is "
        "truncated, so decisions are missing"
    )


def read_replayable(path: Path) -> Records:
    """Read all middlebox decisions in a run, and check that each decision identifies its frame.

    Raises DecisionLogError if the log is missing, ends inside a record, or was written by an older
    version.
    """
    records = read_decisions(path)
    if records is None:
        raise DecisionLogError(f"{path}: expected a decision log, but the file does not exist")
    if torn := torn_text(path):
        raise DecisionLogError(f"{path}: {torn}")
    placed = records["position"] != NO_POSITION
    nameless = np.where(placed, records["session"], records["order"]) == 0
    if nameless.any():
        raise DecisionLogError(
            f"{path}: decision {int(np.argmax(nameless)) + 1} of {len(records)} does not identify "
            "its frame: the log was written by an older version; run the scenario again"
        )
    return records
