"""Makes the loss report of a synthetic run."""

import struct
from collections.abc import Sequence


def loss_report(
    lost: Sequence[int], session_id: int, stream_id: int, channel: str, source: str
) -> bytes:
    """Return a loss report with one entry for gaps of these lengths, or an empty one for none."""
    if not lost:
        return b""
    texts = channel.encode(), source.encode()
    head = struct.pack("<qqqqii", len(lost), sum(lost), 1, 2, session_id, stream_id)
    first = struct.pack("<i", len(texts[0])) + texts[0] + bytes(-len(texts[0]) % 4)
    return head + first + struct.pack("<i", len(texts[1])) + texts[1]
