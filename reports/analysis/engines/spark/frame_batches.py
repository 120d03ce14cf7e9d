"""Frames of one stream packed together, as they travel between Spark's workers.

    frames of a part   a b a a b a
    parcels            a [a a]   a [a a]   b [b b]     a row each: Spark sorts by their heads
    frames of a walk   a a a a   b b

Spark converts, sorts and copies rows, and a row a frame cost it ten times what is worked out of the
frame. A parcel is one row for thousands of them: its head says whose they are and where they begin,
its body is an Arrow batch that nobody between packer and walk looks into.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from windtunnel.reports.analysis.analyze import FATE_COLUMNS
from windtunnel.reports.analysis.reading.schema import FRAMES, READ_FRAMES, own_texts
from windtunnel.reports.analysis.streams.stream_set import KEY_NAMES, by_stream
from windtunnel.reports.analysis.streams.stream_walk import WalkKey

PARCEL_FRAMES = 1 << 14
"""In a parcel at most: some 2 MB, since Spark holds several of a row at once."""
PENDING_FRAMES_MAX = 1 << 18
"""Of all streams together that a packer holds back, waiting for more of the same."""

BODY = pa.schema([READ_FRAMES.field(name) for name in FATE_COLUMNS if name not in KEY_NAMES])
PARCELS = pa.schema(
    [
        *(FRAMES.field(name) for name in KEY_NAMES),
        FRAMES.field("file_index"),
        FRAMES.field("record_at"),
        FRAMES.field("time_ns"),
        ("frames", pa.binary()),
    ]
)
"""Whose frames, where and when the first of them was captured, and all of them as BODY, an Arrow
stream, since what its texts are must travel with them."""
PARCEL_ORDER = ("file_index", "record_at")
"""Of the parcels of a stream at one vantage point: no two of them overlap."""


class Packer:
    """Packs the frames of one part of a capture; take what `feed` and then `finish` give."""

    def __init__(self) -> None:
        self._pending: dict[WalkKey, list[pa.RecordBatch]] = {}
        self._counts: dict[WalkKey, int] = {}

    def feed(self, frames: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take in frames with FATE_COLUMNS, in capture order; returns parcels that are full."""
        for key, rows in by_stream(frames.select(FATE_COLUMNS)):
            self._pending.setdefault(key, []).append(rows)
            self._counts[key] = self._counts.get(key, 0) + rows.num_rows
            if self._counts[key] >= PARCEL_FRAMES:
                yield self._packed(key)
        if sum(self._counts.values()) > PENDING_FRAMES_MAX:
            yield from self.finish()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The parcels of all that is left."""
        for key in list(self._pending):
            yield self._packed(key)

    def _packed(self, key: WalkKey) -> pa.RecordBatch:
        """All that a stream has pending, in as many parcels as it takes."""
        del self._counts[key]
        (rows,) = pa.Table.from_batches(self._pending.pop(key)).combine_chunks().to_batches()
        parcels = []
        for first in range(0, rows.num_rows, PARCEL_FRAMES):
            some = rows.slice(first, PARCEL_FRAMES)
            head = {name: some.column(name)[0].as_py() for name in PARCELS.names[:-1]}
            parcels.append({**head, "frames": _written(own_texts(some.select(BODY.names)))})
        return pa.RecordBatch.from_pylist(parcels, schema=PARCELS)


def packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The parcels of a part's frames, which have FATE_COLUMNS and come in capture order."""
    packer = Packer()
    for batch in batches:
        yield from packer.feed(batch)
    yield from packer.finish()


def unpacked(parcels: pa.RecordBatch) -> Iterator[tuple[WalkKey, pa.RecordBatch]]:
    """Each parcel's key and its frames, with the columns of BODY."""
    points, sessions, streams = (parcels.column(name).to_pylist() for name in KEY_NAMES)
    bodies = parcels.column("frames")
    for index, key in enumerate(zip(points, sessions, streams, strict=True)):
        with pa.ipc.open_stream(bodies[index].as_buffer()) as stream:
            yield key, stream.read_next_batch()


def _written(frames: pa.RecordBatch) -> bytes:
    """A batch as a stream of its own."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, frames.schema) as stream:
        stream.write_batch(frames)
    written: bytes = sink.getvalue().to_pybytes()
    return written
