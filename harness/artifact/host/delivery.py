"""Deliveries: one record for each complete message that a subscriber received, in order.

The messages file next to it contains the messages themselves, concatenated in the same order.
"""

from pathlib import Path

import numpy as np

from windtunnel.harness.artifact.records import Records, read_records

DELIVERY = np.dtype(
    [
        ("position", "<i8"),  # after the message, from the header of its last fragment
        ("length", "<i4"),
        ("session_id", "<i4"),
    ]
)


def read_deliveries(path: Path) -> Records | None:
    """Read all deliveries. Returns None if the file is missing."""
    return read_records(path, DELIVERY)
