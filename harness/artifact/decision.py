"""The middlebox's decision log: one record for each frame that was not simply passed on.

Knows no rule: `rule` is an index into the case's `faults`.
"""

from pathlib import Path

import numpy as np

from harness.artifact.records import Records, read_records

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
        ("rule", "<u2"),
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
        ("detail", "<i8"),  # corrupt: first flipped bit of the frame; truncate: bytes left
    ]
)


def read_decisions(path: Path) -> Records | None:
    """All decisions of a run, or None when the log is missing."""
    return read_records(path, DECISION)
