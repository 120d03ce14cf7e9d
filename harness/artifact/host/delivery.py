"""What a subscriber was given: one record for each whole message, in the order of delivery.

The bytes of the messages lie end to end in the neighbouring messages file, in the same order.
"""

from pathlib import Path

import numpy as np

from windtunnel.harness.artifact.records import Records, read_records

DELIVERY = np.dtype(
    [
        ("position", "<i8"),  # after the message, as the header of its last fragment says
        ("length", "<i4"),
        ("session_id", "<i4"),
    ]
)


def read_deliveries(path: Path) -> Records | None:
    """All deliveries, or None when the file is missing."""
    return read_records(path, DELIVERY)
