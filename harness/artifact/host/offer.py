"""Offers: one record for each message that a publication accepted, in order.

`position` is the return value of offer: the stream position after the message.
"""

from pathlib import Path

import numpy as np

from windtunnel.harness.artifact.records import Records, read_records

OFFER = np.dtype(
    [("message_index", "<i8"), ("length", "<i4"), ("reserved", "<i4"), ("position", "<i8")]
)


def read_offers(path: Path) -> Records | None:
    """Read all accepted offers. Returns None if the file is missing."""
    return read_records(path, OFFER)
