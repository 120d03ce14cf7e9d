"""The local engine: the same rows by the same kernels on one core, without Spark."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from harness.dissect.capture_stream import SplitError
from reports.analysis.capture_files import CaptureFile
from reports.analysis.parts import PartReader, ReadSettings, plan, summed
from reports.analysis.schema import CAPTURES, FRAMES


class LocalFrames:
    """All frames of some files, in the order of the files; may be read again and again."""

    def __init__(
        self,
        files: list[CaptureFile],
        settings: ReadSettings,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._files, self._settings = files, settings
        self._on_progress = on_progress
        self.captures: pa.Table = CAPTURES.empty_table()
        "What became of the packets of each file; of the last reading that came to its end."

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Batches of schema FRAMES, in capture order; tells bytes read since the last one."""
        rows: list[pa.RecordBatch] = []
        yield from self._read(self._files, rows)
        self._sum(rows)

    def side_by_side(self, ahead_ns: dict[str, int]) -> Iterator[pa.RecordBatch]:
        """The same, but of all vantage points whatever comes next by time.

        Batches stay whole and each point's stay in order. `ahead_ns` is how far each point's clock
        is ahead.
        """
        points = list(dict.fromkeys(each.vantage_point for each in self._files))
        if len(points) == 1:
            yield from self.batches()
            return
        rows: list[pa.RecordBatch] = []
        streams = {
            point: self._read([each for each in self._files if each.vantage_point == point], rows)
            for point in points
        }
        waiting: dict[str, pa.RecordBatch] = {}
        while streams or waiting:
            for point in [each for each in streams if each not in waiting]:
                batch = next(streams[point], None)
                if batch is None:
                    del streams[point]
                elif batch.num_rows:
                    waiting[point] = batch
            if waiting:
                yield waiting.pop(
                    min(
                        waiting,
                        key=lambda each: (_first_ns(waiting[each]) - ahead_ns.get(each, 0), each),
                    )
                )
        self._sum(rows)

    def _read(
        self, files: list[CaptureFile], rows: list[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        for part in plan(files, self._settings):
            reader = PartReader(part, self._settings)
            told = 0
            for batch in reader.batches():
                yield batch
                self._on_progress(reader.bytes_read - told)
                told = reader.bytes_read
            rows.append(reader.captures())

    def _sum(self, rows: list[pa.RecordBatch]) -> None:
        self.captures = summed(pa.Table.from_batches(rows, schema=CAPTURES))

    def table(self) -> pa.Table:
        """All frames at once: for captures that fit into memory."""
        return pa.Table.from_batches(self.batches(), schema=FRAMES)


def _first_ns(batch: pa.RecordBatch) -> int:
    return int(pc.min(batch.column("time_ns")).as_py())


def local_frames(
    files: list[CaptureFile],
    settings: ReadSettings,
    on_progress: Callable[[int], None] = lambda _: None,
) -> LocalFrames:
    """The frames of files; one reader a file, which also reads what cannot be split."""
    whole = replace(settings, may_split=settings.parts > 0 and settings.may_split)
    return LocalFrames(files, whole, on_progress)


__all__ = ["LocalFrames", "SplitError", "local_frames"]
