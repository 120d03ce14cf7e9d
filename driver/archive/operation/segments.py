"""Moves the start of a recording, and detaches, attaches or deletes the segment files before it.

    detach     |--------|========|======   the start moves forward, the files are kept
    purge      |        |========|======   the same, and the files are deleted
    delete              |========|======   detached files are deleted
    attach     |========|========|======   existing files before the start are added again

File base positions are multiples of the segment length from the start of the first term. A start
position moves from one base to another, except that a recording's first file may begin with a gap.
Source: archive-protocol 3.12.
"""

from pathlib import Path

import numpy as np

from windtunnel.driver.archive.control.archive_resources import ArchiveResources
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
from windtunnel.driver.archive.storage.frame_position import matches_position
from windtunnel.driver.archive.storage.frame_walk import CHUNK_LENGTH, SegmentReader
from windtunnel.driver.archive.storage.segment_file import base_of, files_between, files_of
from windtunnel.driver.wire.data import ALIGNMENT


class Segments:
    """Detaches, attaches, deletes and purges segment files."""

    def __init__(
        self,
        resources: ArchiveResources,
        recordings: Recordings,
        replays: Replays,
        deletions: Deletions,
    ) -> None:
        self._resources, self._recordings = resources, recordings
        self._replays, self._deletions = replays, deletions

    def detach(self, session: ControlSession, request: DetachSegmentsRequest) -> None:
        """Move the start position of a recording forward, and keep the earlier files."""
        self._require_start(request.recording_id, request.new_start_position)
        self._resources.catalog.set_start_position(request.recording_id, request.new_start_position)
        session.responses.ok(request.correlation_id)

    def purge(self, session: ControlSession, request: PurgeSegmentsRequest) -> None:
        """Move the start position of a recording forward, and delete the earlier files."""
        recording = self._require_start(request.recording_id, request.new_start_position)
        self._deletions.require_none(request.recording_id)
        self._resources.catalog.set_start_position(request.recording_id, request.new_start_position)
        first = base_of(recording, recording.start_position)
        self._delete(session, request.correlation_id, recording, first, request.new_start_position)

    def delete_detached(
        self, session: ControlSession, request: DeleteDetachedSegmentsRequest
    ) -> None:
        """Delete the segment files before the start of a recording."""
        recording = self._resources.recording(request.recording_id)
        self._deletions.require_none(request.recording_id)
        start = base_of(recording, recording.start_position)
        bases = [each.base for each in files_of(self._resources.directory, request.recording_id)]
        length = recording.segment_file_length
        lowest = min([start, *bases])
        first = start - (start - lowest) // length * length
        self._delete(session, request.correlation_id, recording, first, start)

    def _delete(
        self,
        session: ControlSession,
        correlation_id: int,
        recording: RecordingDescriptor,
        first: int,
        end: int,
    ) -> None:
        """Delete the segment files with base positions in [`first`, `end`)."""
        bases = range(first, end, recording.segment_file_length)
        self._deletions.begin_and_respond(
            session, correlation_id, recording.recording_id,
            files_between(self._resources.directory, recording.recording_id, bases),
            count=len(bases),
        )  # fmt: skip

    def _require_start(self, recording_id: int, position: int) -> RecordingDescriptor:
        """Check that a recording's start position can be moved to the given position. Returns the
        recording.

        Raises RequestRejected.
        """
        recording = self._resources.recording(recording_id)
        if position != base_of(recording, position):
            raise RequestRejected(
                f"invalid segment start: {position} is not the base of a segment file"
            )
        lowest = base_of(recording, recording.start_position) + recording.segment_file_length
        if position < lowest:
            raise RequestRejected(
                f"invalid detach: new start {position} is below the minimum {lowest}"
            )
        active = self._recordings.active(recording_id)
        end = recording.stop_position if active is None else active.position
        highest = base_of(recording, end)
        if position > highest:
            raise RequestRejected(
                f"invalid detach: new start {position} is above the maximum {highest}"
            )
        replays = [each for each in self._replays.of(recording_id) if each.segment_base < position]
        if replays:
            first = min(replays, key=lambda each: each.segment_base)
            raise RequestRejected(
                f"invalid detach: new start {position} is above {first.segment_base}, the start "
                "of a file that a replay reads: "
                f"stream {first.stream_id}, channel {first.channel}"
            )
        return recording

    def attach(self, session: ControlSession, request: AttachSegmentsRequest) -> None:
        """Attach the existing segment files that directly precede a recording, and move its start
        position back to their first frame.

        If a file does not fit, the files that were already attached remain attached.
        """
        recording = self._resources.recording(request.recording_id)
        length = recording.segment_file_length
        base, count = recording.start_position - length, 0
        while base >= 0:
            path = self._resources.segment_path(recording.recording_id, base)
            if not path.exists():
                break
            offset = _first_frame(path, base, recording)
            self._resources.catalog.set_start_position(recording.recording_id, base + offset)
            count += 1
            if offset > 0:
                break
            base -= length
        session.responses.ok(request.correlation_id, count)


def _first_frame(path: Path, base: int, recording: RecordingDescriptor) -> int:
    """Return the offset of the first frame in a segment file. The frame must be in the file's
    first term.

    Raises RequestRejected, StorageError.
    """
    with SegmentReader(path, base) as reader:
        if reader.length != recording.segment_file_length:
            raise RequestRejected(
                f"{path}: expected {recording.segment_file_length} bytes, found {reader.length}"
            )
        for at in range(0, recording.term_buffer_length, CHUNK_LENGTH):
            chunk = reader.read(at, min(CHUNK_LENGTH, recording.term_buffer_length - at))
            lengths = chunk[: chunk.size // ALIGNMENT * ALIGNMENT].view("<i4")[:: ALIGNMENT // 4]
            found = np.flatnonzero(lengths > 0)
            if found.size:
                offset = int(found[0]) * ALIGNMENT
                if not matches_position(chunk[offset:], recording, base):
                    raise RequestRejected(
                        f"{path}: the frame at {at + offset} does not belong to recording "
                        f"{recording.recording_id}"
                    )
                return at + offset
    raise RequestRejected(f"{path}: expected a frame in the first term, found none")
