"""Reader for a recording's segment files: frames, messages, and how far a file can be read.

    file --window by window--> rows of frames --> FRAMES
                                   |
                                   +--> `image_kernel` --> MESSAGES, optionally with their bytes

The reader needs memory for one window and its rows, regardless of the file length. The file may be
written to or removed while it is read. Reading stops at the end of the file.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import DATA, NAMES
from windtunnel.harness.dissect.archive_files import recording_walk as walk
from windtunnel.reports.analysis.kernels import image_kernel as image
from windtunnel.reports.analysis.sources.recording_tables import (
    FRAMES,
    MESSAGES,
    SEGMENTS,
    SegmentPart,
)

WINDOW_LENGTH = 1 << 20
ROWS_PER_WINDOW = 1 << 14
PAYLOAD_BYTES_PER_BATCH = 1 << 23
"""Number of message bytes after which a batch is returned."""
HEADER_LENGTH = 32
_NUMBERS = (
    "position", "flags", "frame_length", "stream_id", "term_id", "term_offset", "reserved_value",
)  # fmt: skip
_NO_LIMIT = np.iinfo(np.int64).max


class SegmentReader:
    """Reads one segment file as frames or as messages. `summary` is final after the last batch."""

    def __init__(self, part: SegmentPart) -> None:
        self._part, recording = part, part.recording
        self._cursor = np.zeros(1, dtype=walk.SEGMENT)
        self._cursor[0]["position"] = recording.data_start(part.base)
        self._cursor[0]["end"] = recording.data_end(part.base)
        for name in ("initial_term_id", "term_length", "mtu", "stream_id", "session_id"):
            self._cursor[0][name] = getattr(recording, name)
        self._image = np.zeros(1, dtype=image.IMAGE)
        self._counts = {"data_frames": 0, "pad_frames": 0}
        self._length, self._problem, self._is_read = 0, "", False

    def frames(self) -> Iterator[pa.RecordBatch]:
        """Yield the file's frames as batches of the table FRAMES."""
        for _, rows in self._windows():
            yield self._frame_batch(rows)

    def messages(self, *, keeps_payload: bool) -> Iterator[pa.RecordBatch]:
        """Yield the file's messages as batches of the table MESSAGES, with their bytes if
        `keeps_payload`.
        """
        for file, rows in self._windows():
            found = self._assembled(rows)
            if keeps_payload:
                yield from self._with_payloads(file, found)
            elif len(found):
                yield self._message_batch(found, pa.nulls(len(found), pa.binary()))

    def summary(self) -> pa.RecordBatch:
        """Return the file's row of the table SEGMENTS. Reads the file if that has not been done
        yet.
        """
        if not self._is_read:
            for _, rows in self._windows():
                self._assembled(rows)
        totals = self._image[0]
        row = {
            "archive": self._part.archive,
            "recording_id": self._part.recording.recording_id,
            "file": self._part.path,
            "base_position": self._part.base,
            "file_length": self._length,
            "start_position": self._part.recording.data_start(self._part.base),
            "end_position": int(self._cursor[0]["position"]),
            **self._counts,
            **{name: int(totals[name]) for name in ("messages", "message_bytes")},
            "broken_messages": int(totals["broken_messages"] + totals["is_inside"]),
            "problem": self._problem,
        }
        return pa.RecordBatch.from_pylist([row], schema=SEGMENTS)

    def _windows(self) -> Iterator[tuple[BinaryIO, NDArray[Any]]]:
        """Read the file piece by piece. Yield the open file and the rows of each piece's frames."""
        self._is_read = True
        cursor, rows = self._cursor[0], np.zeros(ROWS_PER_WINDOW, dtype=walk.RECORDED)
        try:
            with open(self._part.path, "rb") as file:
                self._length = file.seek(0, 2)
                status = walk.MORE
                while status == walk.MORE:
                    file.seek(int(cursor["position"]) - self._part.base)
                    window = np.frombuffer(file.read(WINDOW_LENGTH), dtype=np.uint8)
                    status = walk.walk_segment(window, cursor, rows)
                    if not cursor["count"]:
                        break
                    found = rows[: cursor["count"]]
                    data_frames = int((found["frame_type"] == DATA).sum())
                    self._counts["data_frames"] += data_frames
                    self._counts["pad_frames"] += len(found) - data_frames
                    yield file, found
        except OSError as error:
            self._problem = f"cannot be read: {error.strerror}"
            return
        self._problem = self._problem_at_end(status)

    def _problem_at_end(self, status: int) -> str:
        """Return the problem that stopped reading, or an empty string if the file's end is
        valid.
        """
        cursor, stop = self._cursor[0], self._part.recording.stop_position
        if status in walk.PROBLEMS:
            return f"at {cursor['position']} {walk.PROBLEMS[status]}"
        if cursor["position"] < cursor["end"] and (status == walk.MORE or stop >= 0):
            where = "the file ends" if status == walk.MORE else "there are no more frames"
            return f"{where} at {cursor['position']}, before {cursor['end']}"
        if stop >= 0 and cursor["position"] > cursor["end"]:
            return f"the last frame extends beyond the stop position, to {cursor['position']}"
        return ""

    def _frame_batch(self, rows: NDArray[Any]) -> pa.RecordBatch:
        is_data = rows["frame_type"] == DATA
        names = {code: NAMES[code] for code in np.unique(rows["frame_type"]).tolist()}
        columns = {name: pa.array(np.array(rows[name])) for name in _NUMBERS}
        columns["archive"] = pa.repeat(pa.scalar(self._part.archive), len(rows))
        columns["recording_id"] = _repeated(self._part.recording.recording_id, len(rows))
        columns["frame_type"] = pa.array([names[each] for each in rows["frame_type"].tolist()])
        columns["session_id"] = pa.array(
            np.array(rows["session_id"]), mask=rows["checksum"] != walk.NO_CHECKSUM
        )
        columns["payload_crc32"] = pa.array(np.array(rows["payload_crc32"]), mask=~is_data)
        kinds = pa.array(np.array(rows["checksum"], dtype=np.int32))
        columns["checksum"] = pa.array(walk.CHECKSUM_NAMES, pa.string()).take(kinds)
        return pa.RecordBatch.from_arrays([columns[name] for name in FRAMES.names], schema=FRAMES)

    def _assembled(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the messages that end in these frame rows. A message with padding is invalid."""
        data = rows[rows["frame_type"] == DATA]
        parts = np.zeros(len(data), dtype=image.PART)
        parts["start"] = data["position"]
        parts["end"] = data["position"] + (data["frame_length"] + 31 & ~31)
        parts["payload_length"] = data["frame_length"] - HEADER_LENGTH
        parts["flags"], parts["crc"] = data["flags"], data["payload_crc32"]
        parts["is_data"] = parts["has_crc"] = 1
        messages = np.zeros(len(parts), dtype=image.MESSAGE)
        before = int(self._image[0]["messages"])
        image.assemble(parts, self._image[0], messages, _NO_LIMIT)
        return messages[: int(self._image[0]["messages"]) - before]

    def _message_batch(self, messages: NDArray[Any], payloads: pa.Array) -> pa.RecordBatch:
        names = {"position": "position", "length": "length", "crc32": "crc32"}
        columns = {name: pa.array(np.array(messages[source])) for name, source in names.items()}
        columns["archive"] = pa.repeat(pa.scalar(self._part.archive), len(messages))
        columns["recording_id"] = _repeated(self._part.recording.recording_id, len(messages))
        columns["payload"] = payloads
        return pa.RecordBatch.from_arrays(
            [columns[name] for name in MESSAGES.names], schema=MESSAGES
        )

    def _with_payloads(self, file: BinaryIO, messages: NDArray[Any]) -> Iterator[pa.RecordBatch]:
        payloads: list[bytes] = []
        first = kept = 0
        for index, each in enumerate(messages):
            payloads.append(self._payload(file, int(each["position"]), int(each["length"])))
            kept += len(payloads[-1])
            if kept >= PAYLOAD_BYTES_PER_BATCH or index + 1 == len(messages):
                batch = messages[first : index + 1]
                yield self._message_batch(batch, pa.array(payloads, pa.binary()))
                payloads, first, kept = [], index + 1, 0

    def _payload(self, file: BinaryIO, position: int, length: int) -> bytes:
        """Return a message's bytes. All frames of the message must have been read."""
        file.seek(position - self._part.base)
        payload_max = self._part.recording.mtu - HEADER_LENGTH
        fragments = []
        while True:
            frame_length = int.from_bytes(file.read(HEADER_LENGTH)[:4], "little")
            fragments.append(file.read(frame_length - HEADER_LENGTH))
            length -= len(fragments[-1])
            if length <= 0 or not 0 <= frame_length - HEADER_LENGTH <= payload_max:
                return b"".join(fragments)
            file.seek(-frame_length % HEADER_LENGTH, 1)


def _repeated(value: int, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.int64()), count)
