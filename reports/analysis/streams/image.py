"""A stream's image, rebuilt from captured frames: its messages in order, and their checksums.

    new frames, in capture order --> wait for preceding missing frames --> `image_kernel`

A range that is never captured is skipped once the stream has advanced by a term, because no
receiver waits longer. A capture may begin in the middle of a message, so data before the first
complete message does not count as a message. Memory is bounded by the frames of one term.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.reports.analysis.kernels import image_kernel as kernel
from windtunnel.reports.analysis.reading.stream_events import Events, bools, ints
from windtunnel.reports.analysis.streams.geometry import Geometry
from windtunnel.reports.analysis.streams.repair_tables import KEY

IMAGES = pa.schema(
    [
        *KEY,
        ("messages", pa.int64()),
        ("message_bytes", pa.int64()),
        ("crc32", pa.int64()),
        ("broken_messages", pa.int64()),
        ("holes", pa.int64()),
        ("hole_bytes", pa.int64()),
        ("end_position", pa.int64()),
    ]
)
"""Columns of the table `images`. `crc32`: zlib's CRC-32 over the bytes of all messages in order;
null unless checksums are enabled and all payloads were captured. `broken_messages`: messages with a
part that was never captured.
"""
MESSAGES = pa.schema(
    [
        *KEY,
        ("position", pa.int64()),
        ("length", pa.int64()),
        ("crc32", pa.int64()),
        ("time_ns", pa.int64()),
    ]
)
"""Columns of the table `messages`. `position`: start of the message. `time_ns`: when all bytes up
to the message's end had been captured.
"""


class ImageWalk:
    """Rebuilds the image of one flow from its captured frames."""

    def __init__(self, geometry: Geometry) -> None:
        self._reach = geometry.term_length
        self._image = np.zeros(1, dtype=kernel.IMAGE)
        self._waiting = np.zeros(0, dtype=kernel.PART)
        self._high = 0

    def feed(self, parts: Any) -> Any:
        """Add newly captured frames in any order, and return the messages that they complete."""
        if not len(parts):
            return np.zeros(0, dtype=kernel.MESSAGE)
        self._high = max(self._high, int(parts["end"].max()))
        self._waiting = np.concatenate([self._waiting, parts]) if len(self._waiting) else parts
        return self._assemble(self._high - self._reach)

    def finish(self) -> Any:
        """Skip the remaining gaps, and return the messages after them."""
        return self._assemble(self._high)

    def _assemble(self, until: int) -> Any:
        starts, waiting = self._waiting["start"], self._waiting
        if (starts[1:] < starts[:-1]).any():
            waiting = waiting[np.argsort(starts, kind="stable")]
        messages = np.empty(len(waiting), dtype=kernel.MESSAGE)
        before = int(self._image[0]["messages"])
        used = kernel.assemble(waiting, self._image[0], messages, until)
        # A copy: a view would keep all parts of the batch in memory, for each of many flows.
        self._waiting = waiting[used:].copy()
        return messages[: int(self._image[0]["messages"]) - before]

    def row(self) -> dict[str, Any]:
        """Return the image's row of the table IMAGES, without key columns. Call `finish` first."""
        image = self._image[0]
        has_crc = bool(image["has_crc"]) and bool(image["messages"])
        names = ("messages", "message_bytes", "broken_messages", "holes", "hole_bytes")
        return {
            **{name: int(image[name]) for name in names},
            "crc32": int(image["crc"]) if has_crc else None,
            "end_position": int(image["position"]),
        }


class NewFrames:
    """The newly captured frames of a batch, of which each flow's image takes its own."""

    def __init__(self, frames: Any, events: Events, outcomes: Any) -> None:
        rows = events.rows
        self._events = (events.flow_of, events.kinds, outcomes)
        self._times = (events.starts, events.ends, events.times_ns)
        has_crc = bools(pc.is_valid(frames.column("payload_crc32")))
        flags, lengths = ints(frames, "flags")[rows], ints(frames, "frame_length")[rows]
        crcs = ints(frames, "payload_crc32")[rows]
        self._frames = (events.types, flags, lengths, crcs, has_crc[rows])
        self._none = np.zeros(0, dtype=np.bool_)

    def parts_of(self, flow: int, is_left_out: Any = None) -> Any:
        """Return the frames of a flow as records for the image kernel.

        With `is_left_out`, frames that filled a gap are left out, and those in the mask.
        """
        takes_all = is_left_out is None
        parts = np.empty(len(self._times[0]), dtype=kernel.PART)
        mask = self._none if takes_all else is_left_out
        count = kernel.choose_parts(
            flow, *self._events, mask, takes_all, *self._times, *self._frames, parts
        )
        return parts[:count]
