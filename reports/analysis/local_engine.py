"""The local engine: the same rows by the same kernels on one core, without Spark."""

from collections.abc import Callable, Iterator

import pyarrow as pa

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
        rows = []
        for part in plan(self._files, self._settings):
            reader = PartReader(part, self._settings)
            told = 0
            for batch in reader.batches():
                yield batch
                self._on_progress(reader.bytes_read - told)
                told = reader.bytes_read
            rows.append(reader.captures())
        self.captures = summed(pa.Table.from_batches(rows, schema=CAPTURES))

    def table(self) -> pa.Table:
        """All frames at once: for captures that fit into memory."""
        return pa.Table.from_batches(self.batches(), schema=FRAMES)


def local_frames(
    files: list[CaptureFile],
    settings: ReadSettings,
    on_progress: Callable[[int], None] = lambda _: None,
) -> LocalFrames:
    """The frames of files; one reader a file, which also reads what cannot be split."""
    whole = ReadSettings(
        ports=settings.ports,
        keeps_hash=settings.keeps_hash,
        may_split=settings.parts > 0 and settings.may_split,
        parts=settings.parts,
        cell_length=settings.cell_length,
    )
    return LocalFrames(files, whole, on_progress)


__all__ = ["LocalFrames", "SplitError", "local_frames"]
