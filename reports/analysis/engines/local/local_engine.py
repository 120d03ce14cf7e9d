"""The local analysis engine, which runs the same code as Spark workers on one core."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.harness.dissect.capture.capture_stream import SplitError
from windtunnel.reports.analysis.reading.capture_files import CaptureFile
from windtunnel.reports.analysis.reading.parts import PartReader, ReadSettings, plan, sum_captures
from windtunnel.reports.analysis.reading.schema import (
    CAPTURES,
    FRAMES,
    READ_FRAMES,
    decode_dictionaries,
)

KEPT_BYTES_MAX = 1 << 29
"""Memory limit for columns kept from the first reading. Captures that exceed it are read twice."""


class LocalFrames:
    """The frames of a list of capture files, in file order. They can be read repeatedly."""

    def __init__(
        self,
        files: list[CaptureFile],
        settings: ReadSettings,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._files, self._settings = files, settings
        self._on_progress = on_progress
        self._kept: dict[str, list[tuple[pa.RecordBatch, int]]] | None = None
        self.captures: pa.Table = CAPTURES.empty_table()
        "Packet counts per file, from the last complete reading."

    def batches(
        self, columns: Sequence[str] = READ_FRAMES.names, keep: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield the frames' columns as batches, in capture order, and report the bytes read.

        The columns in `keep` stay in memory for `merged`, if they fit.
        """
        rows: list[pa.RecordBatch] = []
        kept: dict[str, list[tuple[pa.RecordBatch, int]]] | None = {} if keep else None
        total = 0
        for point, batch, count in self._read(self._files, rows, columns):
            yield batch
            self._on_progress(count)
            if kept is not None:
                narrow = batch.select(keep)
                total += narrow.nbytes
                kept.setdefault(point, []).append((narrow, count))
                kept = kept if total <= KEPT_BYTES_MAX else None
        self._kept = kept
        self._sum(rows)

    def merged(self, columns: Sequence[str], ahead_ns: dict[str, int]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of all vantage points, merged by time. Columns that `batches` kept in
        memory are not read again.

        Batches are not split, and each vantage point's order is kept. `ahead_ns` states how far
        each vantage point's clock is ahead.
        """
        rows: list[pa.RecordBatch] = []
        streams = {}
        for point in dict.fromkeys(each.vantage_point for each in self._files):
            files = [each for each in self._files if each.vantage_point == point]
            if self._kept is None:
                streams[point] = (
                    (batch, count) for _, batch, count in self._read(files, rows, columns)
                )
            else:
                streams[point] = (each for each in self._kept.get(point, ()))
        waiting: dict[str, tuple[pa.RecordBatch, int]] = {}
        while streams or waiting:
            for point in [each for each in streams if each not in waiting]:
                found = next(streams[point], None)
                if found is None:
                    del streams[point]
                elif found[0].num_rows:
                    waiting[point] = found
            if waiting:
                batch, count = waiting.pop(_earliest(waiting, ahead_ns))
                yield batch
                self._on_progress(count)
        if self._kept is None:
            self._sum(rows)
        self._kept = None

    def _read(
        self, files: list[CaptureFile], rows: list[pa.RecordBatch], columns: Sequence[str]
    ) -> Iterator[tuple[str, pa.RecordBatch, int]]:
        """Yield the vantage point of each batch, the batch, and the number of bytes read for it.
        Adds the packet counts of each file to `rows`.
        """
        for part in plan(files, self._settings):
            reader = PartReader(part, self._settings)
            reported = 0
            for batch in reader.batches(columns):
                yield part.file.vantage_point, batch, reader.bytes_read - reported
                reported = reader.bytes_read
            rows.append(reader.captures())

    def _sum(self, rows: list[pa.RecordBatch]) -> None:
        self.captures = sum_captures(pa.Table.from_batches(rows, schema=CAPTURES))

    def table(self) -> pa.Table:
        """Return all frames as one table, for captures that fit into memory."""
        return pa.Table.from_batches(map(decode_dictionaries, self.batches()), schema=FRAMES)


def _earliest(waiting: dict[str, tuple[pa.RecordBatch, int]], ahead_ns: dict[str, int]) -> str:
    """Return the vantage point whose next batch begins first, after correction of the clock
    offsets.
    """
    if len(waiting) == 1:
        return next(iter(waiting))

    def begins(point: str) -> tuple[int, str]:
        first_ns = int(pc.min(waiting[point][0].column("time_ns")).as_py())
        return first_ns - ahead_ns.get(point, 0), point

    return min(waiting, key=begins)


def local_frames(
    files: list[CaptureFile],
    settings: ReadSettings,
    on_progress: Callable[[int], None] = lambda _: None,
) -> LocalFrames:
    """Return the frames of files, read by one reader per file unless `settings.parts` is set."""
    whole = replace(settings, may_split=settings.parts > 0 and settings.may_split)
    return LocalFrames(files, whole, on_progress)


__all__ = ["LocalFrames", "SplitError", "local_frames"]
