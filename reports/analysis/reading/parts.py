"""Parts of capture files that can be read in parallel, and the reader of one part.

    plain file    |  part 0  |  part 1  |  part 2  |     each of whole cells (see `capture_stream`)
    compressed    |  part 0                        |     not seekable

Parts are planned from the file length alone, and only the head of the file is read. A pcapng file
whose sections or interfaces change in the middle cannot be read in parts. Reading it raises
`SplitError`, and the caller plans again with `may_split=False`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import pyarrow as pa

from windtunnel.harness.dissect.capture.capture_clock import ClockSteps
from windtunnel.harness.dissect.capture.capture_format import CaptureFormatError
from windtunnel.harness.dissect.capture.capture_rows import COUNT_NAMES
from windtunnel.harness.dissect.capture.capture_stream import (
    CELL_LENGTH,
    CELL_LENGTH_MIN,
    GAP_BYTES_MAX,
    NO_STOP,
    UNREADABLE,
    CaptureStream,
    Reading,
)
from windtunnel.reports.analysis.reading.capture_files import (
    CaptureFile,
    open_capture,
    unicode_text,
)
from windtunnel.reports.analysis.reading.frame_table import FrameTable
from windtunnel.reports.analysis.reading.schema import CAPTURES, READ_FRAMES
from windtunnel.reports.analysis.reading.totals import TOTALS_MAX

PART_LENGTH = 1 << 27
"""Length in bytes of each part of an uncompressed file, unless more parts are requested."""


@dataclass(frozen=True)
class ReadSettings:
    """Settings for reading captures: what to read, and the minimum number of parts."""

    ports: tuple[int, ...] = ()
    "UDP ports to read, of either endpoint. If this is empty, all ports are read."
    keeps_hash: bool = True
    keeps_crc32: bool = False
    parts: int = 0
    "Minimum number of parts, if files and cells allow it, or 0 for one part per PART_LENGTH bytes."
    may_split: bool = True
    cell_length: int = CELL_LENGTH
    totals_max: int = TOTALS_MAX
    "Maximum number of totals of a survey."

    def __post_init__(self) -> None:
        """Check all settings. Raises ValueError with the invalid value and its limits."""
        for port in self.ports:
            if not 0 < port < 1 << 16:
                raise ValueError(f"port {port}: expected 1 to 65535")
        if self.cell_length < CELL_LENGTH_MIN:
            raise ValueError(
                f"cell of {self.cell_length} bytes: expected at least {CELL_LENGTH_MIN}"
            )
        if self.parts < 0:
            raise ValueError(f"{self.parts} parts: expected 0 or more")


@dataclass(frozen=True)
class Part:
    """A contiguous range of bytes in a capture file, which one reader reads."""

    file: CaptureFile
    start: int
    stop: int
    is_split: bool


def plan(files: list[CaptureFile], settings: ReadSettings) -> list[Part]:
    """Split files into parts for parallel reading. Returns the parts in order."""
    length = sum(each.length for each in files if not each.compression)
    part_length = PART_LENGTH
    if settings.parts:
        part_length = max(1, -(-length // settings.parts))
    cells = max(1, part_length // settings.cell_length)
    return [part for file in files for part in _parts(file, cells * settings.cell_length, settings)]


def _parts(file: CaptureFile, part_length: int, settings: ReadSettings) -> Iterator[Part]:
    if file.compression or not settings.may_split or file.length <= part_length:
        yield Part(file, 0, NO_STOP, False)
        return
    for start in range(0, file.length, part_length):
        stop = start + part_length
        # The file may have grown since: the last part extends to its end.
        yield Part(file, start, stop if stop < file.length else NO_STOP, True)


class PartReader:
    """Reads one part of a capture file, once. `captures` is final after the last batch."""

    def __init__(self, part: Part, settings: ReadSettings) -> None:
        self._part, self.settings = part, settings
        self._stream: CaptureStream | None = None
        self._problem = ""

    def batches(self, columns: Sequence[str] = READ_FRAMES.names) -> Iterator[pa.RecordBatch]:
        """Yield the part's frames, with the given columns of READ_FRAMES. `captures` reports read
        errors.

        Raises SplitError.
        """
        part, settings = self._part, self.settings
        table = FrameTable(part.file.vantage_point, part.file.index, columns)
        reading = Reading(
            start=part.start,
            stop=part.stop,
            cell_length=settings.cell_length,
            ports=settings.ports,
            keeps_hash=settings.keeps_hash,
            keeps_crc32=settings.keeps_crc32,
            gap_bytes_max=GAP_BYTES_MAX if part.file.compression else NO_STOP,
            is_split=part.is_split,
        )
        try:
            file = open_capture(part.file)
        except OSError as error:
            self._problem = str(error.strerror or error)
            return
        try:
            self._stream = CaptureStream(file, reading)
        except (CaptureFormatError, *UNREADABLE) as error:
            self._problem = str(error)
            file.close()
            return
        try:
            for rows in self._stream.batches():
                yield table.batch(rows)
        finally:
            file.close()

    @property
    def bytes_read(self) -> int:
        """Number of uncompressed bytes read so far, for a progress bar."""
        return 0 if self._stream is None else self._stream.position - self._part.start

    def captures(self) -> pa.RecordBatch:
        """Return the packet counts of this part, as one row of the table CAPTURES."""
        file, stream = self._part.file, self._stream
        row: dict[str, Any] = {
            "file_index": file.index,
            "vantage_point": file.vantage_point,
            "file": unicode_text(file.path),
            "problem": unicode_text(self._problem or (stream.problem if stream else "")),
            **(stream.counts if stream else dict.fromkeys(COUNT_NAMES, 0)),
            **asdict(stream.clock if stream else ClockSteps()),
        }
        return pa.RecordBatch.from_pylist([row], schema=CAPTURES)


def sum_captures(captures: pa.Table) -> pa.Table:
    """Add up the packet counts of all parts, which are in order. Returns one row of the table
    CAPTURES per file, in file order.
    """
    rows: dict[int, dict[str, Any]] = {}
    for row in captures.to_pylist():
        nothing = {**dict.fromkeys(COUNT_NAMES, 0), **asdict(ClockSteps())}
        total = rows.setdefault(row["file_index"], {**row, **nothing})
        total["problem"] = total["problem"] or row["problem"]
        total |= asdict(_clock_of(total).followed_by(_clock_of(row), total["packets"]))
        for name in COUNT_NAMES:
            total[name] += row[name]
    _compare_files([rows[index] for index in sorted(rows)])
    return pa.Table.from_pylist([rows[index] for index in sorted(rows)], schema=CAPTURES)


def _clock_of(row: dict[str, Any]) -> ClockSteps:
    return ClockSteps(**{each.name: row[each.name] for each in fields(ClockSteps)})


def _compare_files(rows: list[dict[str, Any]]) -> None:
    """Add the steps between the files of each vantage point to the rows of the later files."""
    last_ns: dict[str, int] = {}
    for row in rows:
        if not row["first_packet"]:
            continue
        point = row["vantage_point"]
        if point in last_ns:
            end = ClockSteps(1, last_ns[point], last_ns[point])
            joint = end.followed_by(_clock_of(row), 0)
            row |= {
                name: getattr(joint, name)
                for name in ("clock_steps", "clock_step_ns", "clock_step_packet")
            }
        last_ns[point] = row["last_ns"]
