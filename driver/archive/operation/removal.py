"""Truncates and purges recordings.

    truncate   catalog: stop := position --> the file is truncated there, filled with zeros -->
               later files are deleted once no replay reads them
    purge      catalog: DELETED --> all files are deleted

The catalog is changed first. If the archive is killed afterwards, files without a recording may
remain, but never a recording without its files. If no frame begins at the position, Aeron rejects
the request after it has changed the stop position. Here the stop position is not changed.
Source: archive-protocol 3.10, 3.11.
"""

import os
from pathlib import Path

from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.control_session import ControlSession
from windtunnel.driver.archive.control.request_rejected import RequestRejected
from windtunnel.driver.archive.protocol.codes import NULL_VALUE, ErrorCode
from windtunnel.driver.archive.protocol.requests import (
    PurgeRecordingRequest,
    TruncateRecordingRequest,
)
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.recording.recordings import Recordings
from windtunnel.driver.archive.recording.segment_deletions import Deletions
from windtunnel.driver.archive.replay.replays import Replays
from windtunnel.driver.archive.storage.catalog_entry import RecordingState
from windtunnel.driver.archive.storage.frame_position import is_frame_at
from windtunnel.driver.archive.storage.frame_walk import SegmentReader
from windtunnel.driver.archive.storage.segment_file import base_of, files_between, files_of
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.wire.data import ALIGNMENT


class Removal:
    """Operations that truncate or purge recordings."""

    def __init__(
        self,
        resources: ArchiveResources,
        recordings: Recordings,
        replays: Replays,
        deletions: Deletions,
    ) -> None:
        self._resources, self._recordings = resources, recordings
        self._replays, self._deletions = replays, deletions

    def truncate(self, session: ControlSession, request: TruncateRecordingRequest) -> None:
        """Truncate a recording at a position, and abort its replays."""
        resources, position = self._resources, request.position
        recording = resources.recording(request.recording_id)
        self._require_stopped(recording, "truncate")
        start, stop = recording.start_position, recording.stop_position
        if not start <= position <= stop or position % ALIGNMENT:
            raise RequestRejected(
                f"cannot truncate recording {recording.recording_id} at position {position}: "
                f"expected a multiple of {ALIGNMENT} from {start} to {stop}",
                ErrorCode.INVALID_POSITION,
            )
        self._deletions.require_none(recording.recording_id)
        base = base_of(recording, position)
        is_within = position > base and position not in (start, stop)
        if is_within:
            self._require_frame(recording, base, position)
        resources.catalog.set_stop_position(recording.recording_id, position)
        self._replays.abort_of(recording.recording_id)
        if is_within:
            self._truncate_file(recording, base, position)
        files, count = self._files_after(recording, base, position)
        self._deletions.begin_and_respond(
            session, request.correlation_id, recording.recording_id, files,
            lambda: not self._replays.of(recording.recording_id), count,
        )  # fmt: skip

    def _require_stopped(self, recording: RecordingDescriptor, verb: str) -> None:
        if (
            recording.stop_position == NULL_VALUE
            or self._recordings.active(recording.recording_id) is not None
        ):
            raise RequestRejected(
                f"cannot {verb} recording {recording.recording_id}: it is active",
                ErrorCode.ACTIVE_RECORDING,
            )

    def _require_frame(self, recording: RecordingDescriptor, base: int, position: int) -> None:
        path = self._resources.segment_path(recording.recording_id, base)
        with SegmentReader(path, base) as reader:
            if not is_frame_at(reader, recording, position):
                raise RequestRejected(f"no frame begins at position {position} in {path}")

    def _truncate_file(self, recording: RecordingDescriptor, base: int, position: int) -> None:
        path = self._resources.segment_path(recording.recording_id, base)
        try:
            os.truncate(path, position - base)
            os.truncate(path, recording.segment_file_length)
        except OSError as error:
            raise StorageError(f"cannot truncate {path}: {error.strerror}") from error

    def _files_after(
        self, recording: RecordingDescriptor, base: int, position: int
    ) -> tuple[list[Path], int]:
        """Return the files that will contain no data after the truncation, and their number. As in
        Aeron, the number includes files that do not exist.
        """
        if position == recording.start_position:
            files = _all_files(self._resources, recording.recording_id)
            return files, len(files)
        length = recording.segment_file_length
        first = base if position == base else base + length
        bases = range(first, recording.stop_position + 1, length)
        directory = self._resources.directory
        return files_between(directory, recording.recording_id, bases), len(bases)

    def purge(self, session: ControlSession, request: PurgeRecordingRequest) -> None:
        """Delete a recording. Its id is never used again."""
        resources = self._resources
        recording = resources.recording(request.recording_id)
        if self._replays.of(request.recording_id):
            raise RequestRejected(
                f"cannot purge recording {request.recording_id}: it has an active replay",
                ErrorCode.ACTIVE_RECORDING,
            )
        self._require_stopped(recording, "purge")
        self._deletions.require_none(request.recording_id)
        resources.catalog.set_state(request.recording_id, RecordingState.DELETED)
        self._deletions.begin_and_respond(
            session, request.correlation_id, request.recording_id,
            _all_files(resources, request.recording_id),
        )  # fmt: skip


def _all_files(resources: ArchiveResources, recording_id: int) -> list[Path]:
    return [each.path for each in files_of(resources.directory, recording_id)]
