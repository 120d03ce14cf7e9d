"""The times at which an application offered and received each message.

    publisher    .bin         | record 0 | record 1 | ...      subscriber   index.bin   | ...
                 times.bin    | times  0 | times  1 | ...                   times.bin   | ...

Each record belongs to the record with the same index in the file next to it. Run folders that were
written by older versions do not contain these files.
"""

from pathlib import Path

import numpy as np

from windtunnel.harness.artifact.records import Records, read_records

OFFER_TIME = np.dtype([("time_ns", "<i8")])
"""The time of an accepted message's first offer, which back pressure may have rejected."""
DELIVERY_TIME = np.dtype([("time_ns", "<i8")])


def read_offer_times(path: Path) -> Records | None:
    """Read the times of all accepted offers. Returns None if the file is missing."""
    return read_records(path, OFFER_TIME)


def read_delivery_times(path: Path) -> Records | None:
    """Read the times of all deliveries. Returns None if the file is missing."""
    return read_records(path, DELIVERY_TIME)
