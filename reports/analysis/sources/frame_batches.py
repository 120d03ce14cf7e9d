"""Frame batches: frames of one stream packed into one row, for transfer between Spark workers.

    frames of a part   a b a a b a
    frame batches      a [a a]   a [a a]   b [b b]     one row each: Spark sorts them by their keys
    frames of a walk   a a a a   b b

Spark converts, sorts and copies rows. With one row per frame, this cost ten times as much as the
analysis. A frame batch is one row for thousands of frames: its key columns identify stream, vantage
point and start, and its body is an Arrow batch that is only read where the frames are analysed.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from windtunnel.reports.analysis.options import OUTCOME_COLUMNS
from windtunnel.reports.analysis.reading.schema import FRAMES, READ_FRAMES, compact_dictionaries
from windtunnel.reports.analysis.reading.stream_events import packet_numbers
from windtunnel.reports.analysis.streams.stream_set import KEY_NAMES, by_stream
from windtunnel.reports.analysis.streams.stream_walk import WalkKey

BATCH_FRAMES_MAX = 1 << 14
"""Maximum number of frames per batch. This limits a row to 2 MB, as Spark holds several copies of
it.
"""
PENDING_FRAMES_MAX = 1 << 18
"""Maximum number of frames that a packer holds, over all streams, while it fills batches."""

BATCH_BODY = pa.schema(
    [READ_FRAMES.field(name) for name in OUTCOME_COLUMNS if name not in KEY_NAMES]
)
FRAME_BATCHES = pa.schema(
    [
        *(FRAMES.field(name) for name in KEY_NAMES),
        FRAMES.field("file_index"),
        FRAMES.field("record_at"),
        FRAMES.field("time_ns"),
        ("frames", pa.binary()),
    ]
)
"""Columns of a frame batch: key, file offset and time of the first frame, and all frames as
BATCH_BODY in Arrow's stream format, which includes the dictionaries.
"""
BATCH_ORDER = ("file_index", "record_at")
"""Columns by which a stream's batches at one vantage point are sorted. The batches do not
overlap.
"""


class Packer:
    """Packs the frames of one part of a capture into frame batches. Call `feed`, then `finish`."""

    def __init__(self) -> None:
        self._pending: dict[WalkKey, list[pa.RecordBatch]] = {}
        self._counts: dict[WalkKey, int] = {}

    def feed(self, frames: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add frames in capture order, with the columns OUTCOME_COLUMNS. Yield the frame batches
        that are full.
        """
        for key, rows in by_stream(frames.select(OUTCOME_COLUMNS)):
            self._pending.setdefault(key, []).append(rows)
            self._counts[key] = self._counts.get(key, 0) + rows.num_rows
            if self._counts[key] >= BATCH_FRAMES_MAX:
                yield self._packed(key)
        if sum(self._counts.values()) > PENDING_FRAMES_MAX:
            yield from self.finish()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the remaining frames as frame batches."""
        for key in list(self._pending):
            yield self._packed(key)

    def _packed(self, key: WalkKey) -> pa.RecordBatch:
        """Pack a stream's pending frames into frame batches, each of which is one row."""
        del self._counts[key]
        (rows,) = pa.Table.from_batches(self._pending.pop(key)).combine_chunks().to_batches()
        batches = []
        for first, count in _whole_packets(packet_numbers(rows)):
            frames = rows.slice(first, count)
            head = {name: frames.column(name)[0].as_py() for name in FRAME_BATCHES.names[:-1]}
            batches.append(
                {
                    **head,
                    "frames": _serialized(compact_dictionaries(frames.select(BATCH_BODY.names))),
                }
            )
        return pa.RecordBatch.from_pylist(batches, schema=FRAME_BATCHES)


def _whole_packets(packets: Any) -> Iterator[tuple[int, int]]:
    """Divide frames into runs of at most BATCH_FRAMES_MAX, given the packet of each frame.

    Yields the first frame and the length of each run. No packet is divided, unless it alone has
    more frames than a run.
    """
    bounds = np.append(np.flatnonzero(np.diff(packets)) + 1, len(packets))
    first = 0
    while first < len(packets):
        most = first + BATCH_FRAMES_MAX
        before = int(np.searchsorted(bounds, most, side="right")) - 1
        end = int(bounds[before]) if before >= 0 and bounds[before] > first else most
        yield first, end - first
        first = end


def pack_frames(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pack a part's frames with OUTCOME_COLUMNS, in capture order, and yield frame batches."""
    packer = Packer()
    for batch in batches:
        yield from packer.feed(batch)
    yield from packer.finish()


def unpack_frames(batches: pa.RecordBatch) -> Iterator[tuple[WalkKey, pa.RecordBatch]]:
    """Yield each frame batch's key, and its frames with the columns of BATCH_BODY."""
    points, sessions, streams = (batches.column(name).to_pylist() for name in KEY_NAMES)
    bodies = batches.column("frames")
    for index, key in enumerate(zip(points, sessions, streams, strict=True)):
        with pa.ipc.open_stream(bodies[index].as_buffer()) as stream:
            yield key, stream.read_next_batch()


def _serialized(frames: pa.RecordBatch) -> bytes:
    """Serialize an Arrow batch in Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, frames.schema) as stream:
        stream.write_batch(frames)
    written: bytes = sink.getvalue().to_pybytes()
    return written
