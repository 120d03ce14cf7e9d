"""Formats the frames of recordings with their payloads, as text or as JSON objects."""

from collections.abc import Iterator
from typing import Any

from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage.frame_walk import FrameHeader, SegmentReader
from windtunnel.driver.archive.storage.recovery import first_offset
from windtunnel.driver.archive.storage.segment_file import SegmentFile
from windtunnel.driver.base.arith import align
from windtunnel.driver.wire import frame_type
from windtunnel.driver.wire.data import ALIGNMENT, HEADER_LENGTH

ROW_LENGTH = 16
RANGES_SHOWN = 3


def frames(
    descriptor: RecordingDescriptor, segments: list[SegmentFile]
) -> Iterator[tuple[FrameHeader, bytes]]:
    """Yield every frame of a recording with its payload. Raises StorageError if a segment file
    cannot be read.
    """
    stop = descriptor.stop_position
    for segment in segments:
        if segment.base + descriptor.segment_file_length <= descriptor.start_position:
            continue
        with SegmentReader(segment.path, segment.base) as reader:
            end = min(reader.length, descriptor.segment_file_length)
            if stop != NULL_VALUE:
                end = min(end, stop - segment.base)
            for frame in reader.frames(first_offset(descriptor, segment.base), end):
                is_pad = frame.type_code == frame_type.PAD
                length = 0 if is_pad else max(frame.frame_length - HEADER_LENGTH, 0)
                at = frame.position - segment.base + HEADER_LENGTH
                yield frame, reader.read(at, min(length, max(end - at, 0))).tobytes()


class MissingFrames:
    """The ranges of a recording that its segment files do not contain, as far as its frames were
    read.
    """

    def __init__(self, descriptor: RecordingDescriptor) -> None:
        self._descriptor = descriptor
        self._position = descriptor.start_position
        self._ranges: list[tuple[int, int]] = []

    def on_frame(self, frame: FrameHeader) -> None:
        """Note the next frame."""
        self._expect(frame.position)
        self._position = frame.position + align(frame.frame_length, ALIGNMENT)

    def on_end(self) -> None:
        """Note that there are no more frames."""
        self._expect(self._descriptor.stop_position)

    def _expect(self, position: int) -> None:
        if position > self._position:
            self._ranges.append((self._position, position))

    @property
    def text(self) -> str:
        """The reason why the dump is incomplete, or an empty string."""
        if not self._ranges:
            return ""
        stop = self._descriptor.stop_position
        until = "" if stop == NULL_VALUE else f" to {stop}"
        shown = ", ".join(f"{start} to {end}" for start, end in self._ranges[:RANGES_SHOWN])
        more = ", ..." if len(self._ranges) > RANGES_SHOWN else ""
        return (
            f"recording {self._descriptor.recording_id}: expected frames at all positions from "
            f"{self._descriptor.start_position}{until}, found none from {shown}{more}; "
            "`windtunnel archive verify --all-segments --read-only` names the first fault"
        )


def type_name(frame: FrameHeader) -> str:
    """Return the name of a frame type, or its number if the type is unknown."""
    names = {frame_type.PAD: "PAD", frame_type.DATA: "DATA"}
    return names.get(frame.type_code, str(frame.type_code))


def frame_document(frame: FrameHeader, payload: bytes) -> dict[str, Any]:
    """Return one frame as a JSON object."""
    return {**frame._asdict(), "type": type_name(frame), "payload": payload.hex()}


def frame_lines(frame: FrameHeader, payload: bytes) -> Iterator[str]:
    """Yield one frame as lines of text, with its payload in hexadecimal."""
    yield (
        f"  position {frame.position}  {type_name(frame)}  flags {frame.flags:08b}  "
        f"length {frame.frame_length}  term {frame.term_id}:{frame.term_offset}  "
        f"session {frame.session_id}  stream {frame.stream_id}"
    )
    for at in range(0, len(payload), ROW_LENGTH):
        row = payload[at : at + ROW_LENGTH]
        text = "".join(chr(each) if 0x20 <= each < 0x7F else "." for each in row)
        yield f"    {at:08x}  {row.hex(' '):<47}  |{text}|"
