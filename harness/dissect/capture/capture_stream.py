"""Reads captures of any size as streams: yields Aeron frames in batches, and counts the rest.

    file    |....cell 0....|....cell 1....|....cell 2....|.... 500 GB
                 ^ a reader starts at a cell boundary      ^ and stops at another
    window       [====]    8 MiB, moved through the file

At the start of each cell, the reader searches for the next record without using earlier bytes. Rows
and counts therefore do not depend on how cells are distributed among readers, even for damaged
files. Memory use is bounded for any file.
"""

import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.dissect.capture import capture_rows
from windtunnel.harness.dissect.capture import capture_walk as walking
from windtunnel.harness.dissect.capture.capture_clock import CLOCK, ClockSteps
from windtunnel.harness.dissect.capture.capture_format import (
    HEAD_LENGTH,
    INTERFACE,
    INTERFACES_MAX,
    PCAP,
    CaptureFormat,
    read_format,
)
from windtunnel.harness.dissect.capture.capture_records import (
    CHAIN_LENGTH,
    FOUND,
    MORE,
    WINDOW,
    find_record,
)
from windtunnel.harness.dissect.capture.capture_rows import COUNT_NAMES
from windtunnel.harness.dissect.capture.reassembly import PENDING, REACH, SLOT_LENGTH, SLOTS
from windtunnel.harness.dissect.frames.wire_frame import KEEPS_CRC32, KEEPS_HASH, WIRE_FRAME

CELL_LENGTH = 1 << 24
CELL_LENGTH_MIN = 1 << 17
"""Minimum cell length: longer than any IP packet, so that no cell is inside a record."""
WINDOW_LENGTH = 1 << 23
"""Window length: twice the longest record, so that a record and the chain after it always fit."""
READ_LENGTH = 1 << 20
"""Number of bytes per read call."""
ROWS_A_BATCH = 1 << 16
SEARCH_STEPS = 1 << 26
"""Maximum number of headers examined by searches in each cell, to limit the cost of crafted
files.
"""
NO_STOP = 1 << 62
GAP_BYTES_MAX = 1 << 26
"""Number of bytes without a packet after which reading ends, for compressed files. A few megabytes
of compressed data can expand to many gigabytes of zeros, more than any damage explains.
"""
UNREADABLE = (EOFError, OSError, lzma.LZMAError, zlib.error)


class SplitError(ValueError):
    """A pcapng file cannot be split: it has a section or interface block after its start."""


class Readable(Protocol):
    """The methods of a capture file that CaptureStream uses. `seek` is called only if reading
    starts in the middle of the file.
    """

    def readinto(self, buffer: memoryview, /) -> int | None: ...
    def seek(self, offset: int, /) -> int: ...


@dataclass(frozen=True)
class FrameRows:
    """A batch of frame rows. Its arrays are reused for the next batch."""

    rows: NDArray[Any]
    "Array of WIRE_FRAME, in file order."
    addresses: NDArray[Any]
    "ADDRESS slots. The `source` and `destination` of a row are indices of slots."
    texts: NDArray[np.uint8]
    "Bytes of error messages and resolution entries. A row's `text_at` is an offset in them."


@dataclass(frozen=True)
class Reading:
    """The part of a capture file to read, and options such as the UDP ports to read."""

    start: int = 0
    "File offset at which the first cell starts."
    stop: int = NO_STOP
    "File offset at which reading stops, the start of a cell. Records from there on are not read."
    cell_length: int = CELL_LENGTH
    ports: tuple[int, ...] = ()
    "UDP ports, source or destination, of the datagrams to read. Empty for all."
    keeps_hash: bool = True
    keeps_crc32: bool = False
    gap_bytes_max: int = NO_STOP
    "Number of bytes without a packet, in whole cells, after which reading ends."
    is_split: bool = False
    "Whether other readers read other parts of the file. Later pcapng sections raise SplitError."


class CaptureStream:
    """Reads a capture file, or a part of it, once. `counts` and `problem` are final after the last
    batch.
    """

    def __init__(self, file: Readable, reading: Reading) -> None:
        """Read the start of the file. Raises CaptureFormatError if the file is not a capture, or an
        exception in UNREADABLE if it cannot be read.
        """
        assert reading.start % reading.cell_length == 0
        assert reading.stop == NO_STOP or reading.stop % reading.cell_length == 0
        self.problem = ""
        "The error that prevented reading to the end, or an empty string."
        self.format: CaptureFormat
        self._file, self._reading = file, reading
        self._counts = np.zeros(len(COUNT_NAMES), dtype=np.int64)
        self._clock = np.zeros(1, dtype=CLOCK)[0]
        self._buf = np.zeros(WINDOW_LENGTH, dtype=np.uint8)
        self._window = np.zeros(1, dtype=WINDOW)[0]
        self._walk = np.zeros(1, dtype=capture_rows.WALK)[0]
        self._walk["keeps"] = reading.keeps_hash * KEEPS_HASH + reading.keeps_crc32 * KEEPS_CRC32
        self._walk["may_meet_section"] = not reading.is_split
        self._interfaces = np.zeros(INTERFACES_MAX, dtype=INTERFACE)
        self._ports = np.array(reading.ports, dtype=np.int64)
        rows = ROWS_A_BATCH + capture_rows.FRAMES_A_DATAGRAM_MAX
        self._rows = np.zeros(rows, dtype=WIRE_FRAME)
        self._addresses = np.zeros(capture_rows.ADDRESS_SLOTS, dtype=capture_rows.ADDRESS)
        self._texts = np.zeros(capture_rows.TEXTS_LENGTH, dtype=np.uint8)
        self._pending = np.zeros(SLOTS, dtype=PENDING)
        self._store = np.zeros((SLOTS, SLOT_LENGTH), dtype=np.uint8)
        self._pair = np.zeros(4, dtype=np.int64)
        self._read_head()

    @property
    def counts(self) -> dict[str, int]:
        """The counts of packets, datagrams and other items read so far, by the names in
        COUNT_NAMES.
        """
        return dict(zip(COUNT_NAMES, (int(each) for each in self._counts), strict=True))

    @property
    def clock(self) -> ClockSteps:
        """Where the times of the packets read so far go back."""
        return ClockSteps(*(int(each) for each in self._clock))

    @property
    def position(self) -> int:
        """File offset of the next byte to read."""
        return int(self._window["base"]) + int(self._window["at"])

    def batches(self) -> Iterator[FrameRows]:
        """Yield all frames of the requested part in batches."""
        reading, window = self._reading, self._window
        cell = reading.start
        packet_count, gap_start = 0, cell
        if reading.start > self.position:
            self._go_to(reading.start)
            window["steps"] = SEARCH_STEPS
            self._search(reading.start)
        while True:
            cell += reading.cell_length
            window["stop"] = cell
            yield from self._read_cell()
            if self._is_at_end():
                break
            self._resynchronize(cell)
            if self._counts[capture_rows.PACKETS] != packet_count:
                packet_count, gap_start = int(self._counts[capture_rows.PACKETS]), cell
            elif cell - gap_start >= reading.gap_bytes_max:
                gap = f"no packet in {cell - gap_start} bytes: expected a capture"
                self.problem = f"was only read up to byte {cell}: {gap}"
                break
            if cell >= reading.stop:
                self._walk["is_tail"] = 1
                if not self._walk["pending"] or cell >= reading.stop + REACH:
                    break
            if self._is_at_end():
                break
        self._counts[capture_rows.FRAGMENTS_INCOMPLETE] += self._walk["pending"]
        if self._walk["count"]:
            yield self._batch()

    def _is_at_end(self) -> bool:
        return bool(self._window["is_eof"]) and bool(self._window["at"] >= self._window["limit"])

    def _read_head(self) -> None:
        window = self._window
        self._refill()
        head = self._buf[: min(HEAD_LENGTH, int(window["limit"]))].tobytes()
        if not head and self.problem:
            raise EOFError(self.problem)
        self.format = read_format(head)
        window["kind"] = self.format.kind
        window["big_endian"] = self.format.is_big_endian
        window["fraction_ns"] = self.format.fraction_ns
        window["link_type"] = self.format.link_type
        window["near_s"] = -1
        window["until"] = NO_STOP
        window["steps"] = SEARCH_STEPS
        window["at"] = window["first"] = self.format.first_record
        if self.format.kind != PCAP:
            while walking.read_head_blocks(self._buf, window, self._interfaces) == walking.MORE:
                self._refill()
            return
        if find_record(self._buf, window) == FOUND:
            at = int(window["at"])
            seconds = self._buf[at : at + 4].tobytes()
            window["near_s"] = int.from_bytes(
                seconds, "big" if self.format.is_big_endian else "little"
            )
        window["at"] = self.format.first_record
        window["steps"] = SEARCH_STEPS

    def _refill(self) -> None:
        """Move the unread bytes to the front of the window, and fill the remaining space from the
        file.

        CHAIN_LENGTH bytes before the unread bytes are kept, because a search looks back that far.
        """
        window = self._window
        limit = int(window["limit"])
        dropped = max(0, int(window["at"]) - CHAIN_LENGTH)
        self._buf[: limit - dropped] = self._buf[dropped:limit]
        window["base"] += dropped
        window["at"] -= dropped
        limit -= dropped
        while limit < len(self._buf) and not window["is_eof"]:
            try:
                read = self._file.readinto(self._buf[limit : limit + READ_LENGTH].data) or 0
            except UNREADABLE as error:
                self.problem = f"cannot be read after byte {int(window['base']) + limit}: {error}"
                read = 0
            window["is_eof"] = read == 0
            limit += read
        window["limit"] = limit

    def _go_to(self, offset: int) -> None:
        """Move the window to another file offset. The window also includes up to CHAIN_LENGTH bytes
        before this offset.
        """
        window = self._window
        before = max(0, offset - CHAIN_LENGTH)
        self._file.seek(before)
        window["base"], window["at"], window["limit"], window["is_eof"] = before, 0, 0, 0
        self._refill()
        window["at"] = min(offset - before, int(window["limit"]))

    def _read_cell(self) -> Iterator[FrameRows]:
        """Read the records of a cell, a fixed-length part of the file: those that start before
        `window.stop`.
        """
        walk, window = self._walk, self._window
        while True:
            # The payload hashes use wrapping arithmetic, which causes numpy warnings if the JIT is
            # disabled.
            with np.errstate(over="ignore"):
                status = walking.walk_records(
                    self._buf, window, self._interfaces, walk, self._counts, self._clock,
                    self._ports, self._rows, self._addresses, self._texts, self._pending,
                    self._store, self._pair,
                )  # fmt: skip
            if status == walking.STOPPED:
                return
            if status == walking.FULL:
                yield self._batch()
            elif status == walking.MORE:
                self._refill()
            elif status == walking.UNEXPECTED_SECTION:
                raise SplitError(
                    f"has a pcapng section or interface block at byte {self.position}, "
                    "not at the start, so it cannot be read in parts"
                )
            else:
                self._skip_damage(is_torn=status == walking.TORN)

    def _batch(self) -> FrameRows:
        """Return the rows read so far as a batch, and reset the buffers."""
        batch = FrameRows(
            self._rows[: int(self._walk["count"])], self._addresses.copy(), self._texts
        )
        self._walk["count"] = self._walk["address_count"] = self._walk["texts_used"] = 0
        self._addresses["is_used"] = 0
        return batch

    def _search(self, start: int) -> bool:
        """Search for the next record from the file offset `start`, which is in the window, to the
        end of its cell (a fixed-length part of the file).

        Returns False if there is none. Reading then continues at the end of the cell or file.
        """
        window, length = self._window, self._reading.cell_length
        window["at"] = start - int(window["base"])
        window["until"] = (start // length + 1) * length
        while (status := find_record(self._buf, window)) == MORE:
            self._refill()
        if status == FOUND:
            return True
        while self.position < window["until"] and not self._is_at_end():
            window["at"] = min(int(window["until"] - window["base"]), int(window["limit"]))
            if window["at"] == window["limit"]:
                self._refill()
        return False

    def _skip_damage(self, is_torn: bool) -> None:
        """Skip damaged bytes and continue with the next record."""
        damaged_at = self.position
        found = self._search(damaged_at + 1)
        skipped = self.position - damaged_at
        if self._walk["is_tail"]:
            return
        if is_torn and not found:
            self._counts[capture_rows.TORN_BYTES] += skipped
        else:
            self._counts[capture_rows.DAMAGED_PLACES] += 1
            self._counts[capture_rows.DAMAGED_BYTES] += skipped

    def _resynchronize(self, cell: int) -> None:
        """Find the first record of a cell, a fixed-length part of the file. In an undamaged file,
        this is simply the next record.
        """
        expected = self.position
        self._window["steps"] = SEARCH_STEPS
        found = self._search(cell)
        skipped = self.position - expected
        if self._walk["is_tail"] or skipped == 0:
            return
        if self._is_at_end() and not found:
            self._counts[capture_rows.TORN_BYTES] += max(skipped, 0)
            return
        self._counts[capture_rows.DAMAGED_PLACES] += expected != cell
        self._counts[capture_rows.DAMAGED_BYTES] += max(skipped, 0)
