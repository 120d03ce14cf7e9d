"""The middlebox's decision log: one record for each frame that was not simply passed on.

A record says what became of a frame, and which frame that was in words that another run has too:

    DATA, PAD with a place    link, class, stream, session by number, position, attempt
    any other                 link, class, stream, order of appearance

Logs of older versions have zeros where `session` and `order` are, and so cannot be replayed. Knows
no rule: `rule` is an index into the case's `faults`.
"""

from pathlib import Path

import numpy as np

from windtunnel.harness.artifact.records import Records, has_torn_tail, read_records

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

LINK_A_TO_B = 0
LINK_B_TO_A = 1
LINKS: tuple[str, str] = ("a->b", "b->a")
"""Names of link directions by code; a and b are the first and second host of the case's link."""

NO_POSITION = -1

DECISION = np.dtype(
    [
        ("time_ns", "<i8"),
        ("rule", "u1"),
        ("session", "u1"),  # number of its session on its stream, from 1; 0 without a position
        ("action", "u1"),
        ("link", "u1"),
        ("frame_type", "<u2"),  # a code of frame_class
        ("flags", "u1"),
        ("timing_sensitive", "u1"),  # 1: by order of appearance or by time, not by position alone
        ("session_id", "<i4"),
        ("stream_id", "<i4"),
        ("term_id", "<i4"),
        ("term_offset", "<i4"),
        ("frame_length", "<i4"),  # the frame's positional length, aligned to 32
        ("position", "<i8"),  # of the frame's first byte, or NO_POSITION
        ("attempt", "<i4"),  # 1 for the first passage of this position over this link direction
        ("delay_ns", "<i8"),
        ("detail", "<i4"),  # corrupt: first flipped bit of the frame; truncate: bytes left
        ("order", "<i4"),  # among those of its class, stream and link, from 1; 0 with a position
    ]
)

IDENTITY = ("link", "frame_type", "stream_id", "session", "position", "attempt", "order")
"""What says which frame a decision was about, in any run of the same streams."""


def read_decisions(path: Path) -> Records | None:
    """All decisions of a run, or None when the log is missing."""
    return read_records(path, DECISION)


class DecisionLogError(ValueError):
    """A decision log that cannot be repeated; the text names the file and what is wrong."""


def read_repeatable(path: Path) -> Records:
    """All decisions of a run, each of which says which frame it was about.

    Raises DecisionLogError when the log is missing, ends inside a record, or is too old for that.
    """
    records = read_decisions(path)
    if records is None:
        raise DecisionLogError(f"{path}: there is no decision log in this folder")
    if has_torn_tail(path, DECISION):
        size_bytes = path.stat().st_size
        raise DecisionLogError(
            f"{path}: {size_bytes} bytes end inside a record of {DECISION.itemsize}: "
            "the log was cut off, so it is not all that was decided"
        )
    placed = records["position"] != NO_POSITION
    nameless = np.where(placed, records["session"], records["order"]) == 0
    if nameless.any():
        raise DecisionLogError(
            f"{path}: decision {int(np.argmax(nameless)) + 1} of {len(records)} does not say which "
            "frame it was about: the log was written by an older version"
        )
    return records
