"""Let a recording start later, or earlier again, and what becomes of the files before its start.

    detach     |--------|========|======   start moves on, files stay
    purge      |        |========|======   and go
    delete              |========|======   what was detached goes
    attach     |========|========|======   files that are there belong to it again

Bases of files are anchored at the term of the start, so a start only ever moves from base to base;
but the first file of a recording may begin in its middle. Source: archive-protocol 3.12.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from windtunnel.driver.archive.control.archive_resources import ArchiveResources, base_of
from windtunnel.driver.archive.control.control_session import ControlSession
from windtunnel.driver.archive.control.request_rejected import RequestRejected
from windtunnel.driver.archive.protocol.requests import (
    AttachSegmentsRequest,
    DeleteDetachedSegmentsRequest,
    DetachSegmentsRequest,
    PurgeSegmentsRequest,
)
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.recording.recordings import Recordings
from windtunnel.driver.archive.recording.segment_deletions import Deletions
from windtunnel.driver.archive.replay.replays import Replays
from windtunnel.driver.archive.storage.frame_place import has_place
from windtunnel.driver.archive.storage.frame_walk import CHUNK_LENGTH, SegmentReader
from windtunnel.driver.archive.storage.segment_file import files_of
from windtunnel.driver.wire.data import ALIGNMENT


class Segments:
    """Detach, attach, delete, purge."""

    def __init__(
        self,
        facilities: ArchiveResources,
        recordings: Recordings,
        replays: Replays,
        deletions: Deletions,
    ) -> None:
        self._facilities, self._recordings = facilities, recordings
        self._replays, self._deletions = replays, deletions

    def detach(self, session: ControlSession, request: DetachSegmentsRequest) -> None:
        """Let a recording start later."""
        self._require_start(request.recording_id, request.new_start_position)
        self._facilities.catalog.set_start_position(
            request.recording_id, request.new_start_position
        )
        session.ok(request.correlation_id)

    def purge(self, session: ControlSession, request: PurgeSegmentsRequest) -> None:
        """Let a recording start later and delete the files before."""
        recording = self._require_start(request.recording_id, request.new_start_position)
        self._deletions.require_none(request.recording_id)
        self._facilities.catalog.set_start_position(
            request.recording_id, request.new_start_position
        )
        first = base_of(recording, recording.start_position)
        self._deletions.answer(
            session, request.correlation_id, request.recording_id,
            self._files(recording, first, request.new_start_position),
        )  # fmt: skip

    def delete_detached(
        self, session: ControlSession, request: DeleteDetachedSegmentsRequest
    ) -> None:
        """Delete the files before a recording's start."""
        recording = self._facilities.recording(request.recording_id)
        self._deletions.require_none(request.recording_id)
        start = base_of(recording, recording.start_position)
        bases = [each.base for each in files_of(self._facilities.directory, request.recording_id)]
        length = recording.segment_file_length
        lowest = min([start, *bases])
        first = start - (start - lowest) // length * length
        self._deletions.answer(
            session, request.correlation_id, request.recording_id,
            self._files(recording, first, start),
        )  # fmt: skip

    def _files(self, recording: RecordingDescriptor, first: int, end: int) -> Iterable[Path]:
        """The files from one base up to another."""
        return [
            self._facilities.segment_path(recording.recording_id, base)
            for base in range(first, end, recording.segment_file_length)
        ]

    def _require_start(self, recording_id: int, position: int) -> RecordingDescriptor:
        """The recording, if it could start there. Raises Refusal."""
        recording = self._facilities.recording(recording_id)
        if position != base_of(recording, position):
            raise RequestRejected(
                f"invalid segment start: {position} is no base of recording's files"
            )
        lowest = base_of(recording, recording.start_position) + recording.segment_file_length
        if position < lowest:
            raise RequestRejected(f"invalid detach: new start {position}, lower bound {lowest}")
        active = self._recordings.active(recording_id)
        end = recording.stop_position if active is None else active.position
        highest = base_of(recording, end)
        if position > highest:
            raise RequestRejected(
                f"invalid detach: in use, new start {position}, upper bound {highest}"
            )
        replays = [each for each in self._replays.of(recording_id) if each.segment_base < position]
        if replays:
            first = min(replays, key=lambda each: each.segment_base)
            raise RequestRejected(
                f"invalid detach: replay in progress, new start {position}, upper bound "
                f"{first.segment_base}, stream {first.stream_id}, channel {first.channel}"
            )
        return recording

    def attach(self, session: ControlSession, request: AttachSegmentsRequest) -> None:
        """Let a recording start earlier, with every file that is there and precedes it.

        What was attached before a file that does not fit stays attached.
        """
        recording = self._facilities.recording(request.recording_id)
        length = recording.segment_file_length
        base, count = recording.start_position - length, 0
        while base >= 0:
            path = self._facilities.segment_path(recording.recording_id, base)
            if not path.exists():
                break
            offset = _first_frame(path, base, recording)
            self._facilities.catalog.set_start_position(recording.recording_id, base + offset)
            count += 1
            if offset > 0:
                break
            base -= length
        session.ok(request.correlation_id, count)


def _first_frame(path: Path, base: int, recording: RecordingDescriptor) -> int:
    """Where the data of a file begins, within its first term. Raises Refusal, StorageError."""
    with SegmentReader(path, base) as reader:
        if reader.length != recording.segment_file_length:
            raise RequestRejected(
                f"{path} has {reader.length} bytes, expected {recording.segment_file_length}"
            )
        for at in range(0, recording.term_buffer_length, CHUNK_LENGTH):
            chunk = reader.read(at, min(CHUNK_LENGTH, recording.term_buffer_length - at))
            lengths = chunk[: chunk.size // ALIGNMENT * ALIGNMENT].view("<i4")[:: ALIGNMENT // 4]
            found = np.flatnonzero(lengths > 0)
            if found.size:
                offset = int(found[0]) * ALIGNMENT
                if not has_place(chunk[offset:], recording, base):
                    raise RequestRejected(
                        f"{path}: the frame at {at + offset} is not of recording "
                        f"{recording.recording_id}"
                    )
                return at + offset
    raise RequestRejected(f"{path}: no frame in its first term")
