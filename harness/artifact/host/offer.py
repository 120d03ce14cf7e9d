"""What a publisher did: one record for each message it got accepted, in order.

`position` is what offer returned: the stream position just after the message.
"""

from pathlib import Path

import numpy as np

from windtunnel.harness.artifact.records import Records, read_records

OFFER = np.dtype(
    [("message_index", "<i8"), ("length", "<i4"), ("reserved", "<i4"), ("position", "<i8")]
)


def read_offers(path: Path) -> Records | None:
    """All accepted offers, or None when the file is missing."""
    return read_records(path, OFFER)
