"""Moves the segment files of a recording to the recording that directly precedes or follows it.

    source       |====|====|                 source           |====|====|
    destination            |====|====        destination  |====|
                 prepend: start moves back   append: stop moves forward

All conditions are checked before the first file is renamed. The catalog is updated after the files.
If the archive is killed in between, files have no catalog entry and can be renamed back.
Source: archive-protocol 3.12.
"""

import os

from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.control_session import ControlSession
from windtunnel.driver.archive.control.request_rejected import RequestRejected
from windtunnel.driver.archive.protocol.codes import NULL_VALUE, RecordingSignal
from windtunnel.driver.archive.protocol.requests import MigrateSegmentsRequest
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.recording.recordings import Recordings
from windtunnel.driver.archive.recording.segment_deletions import Deletions
from windtunnel.driver.archive.storage.segment_file import base_of
from windtunnel.driver.base.errors import StorageError

_EQUAL = {
    "segment_file_length": "SegmentFileLength",
    "term_buffer_length": "TermBufferLength",
    "initial_term_id": "InitialTermId",
    "stream_id": "StreamId",
    "mtu_length": "MtuLength",
}
"""Fields that must be equal, in the order of the checks, with the names in Aeron's error
messages.
"""


class Migration:
    """Migrates segment files between recordings."""

    def __init__(
        self, resources: ArchiveResources, recordings: Recordings, deletions: Deletions
    ) -> None:
        self._resources, self._recordings = resources, recordings
        self._deletions = deletions

    def migrate(self, session: ControlSession, request: MigrateSegmentsRequest) -> None:
        """Move all segment files of the source recording to the destination recording."""
        catalog = self._resources.catalog
        source = self._resources.recording(request.src_recording_id)
        destination = self._resources.recording(request.dst_recording_id)
        source_id, destination_id = source.recording_id, destination.recording_id
        self._require_fit(source, destination)
        is_before = source.stop_position == destination.start_position
        bases = self._require_movable(source, destination_id)
        surplus = base_of(source, source.stop_position) == source.stop_position
        if surplus:
            self._deletions.require_none(source_id)
        for base in bases:
            self._rename(source_id, destination_id, base)
        if is_before:
            catalog.set_start_position(destination_id, source.start_position)
        else:
            catalog.set_stop_position(destination_id, source.stop_position)
        catalog.set_stop_position(source_id, source.start_position)
        session.responses.ok(request.correlation_id, len(bases))
        if surplus:
            empty = self._resources.segment_path(source_id, source.stop_position)
            self._deletions.begin(session, request.correlation_id, source_id, [empty])
        elif bases:
            session.responses.signal(request.correlation_id, RecordingSignal.DELETE, source_id)

    def _require_fit(self, source: RecordingDescriptor, destination: RecordingDescriptor) -> None:
        """Raise RequestRejected unless the two recordings are compatible and adjacent."""
        if (
            source.stop_position == NULL_VALUE
            or self._recordings.active(source.recording_id) is not None
        ):
            raise RequestRejected(f"cannot migrate recording {source.recording_id}: it is active")
        for name, label in _EQUAL.items():
            theirs, ours = getattr(source, name), getattr(destination, name)
            if theirs != ours:
                raise RequestRejected(f"invalid migrate: src{label}={theirs} dst{label}={ours}")
        if source.stop_position == destination.start_position:
            join = source.stop_position
        elif source.start_position == destination.stop_position:
            join = source.start_position
        else:
            raise RequestRejected(
                "invalid migrate: src and dst are not contiguous "
                f"srcStartPosition={source.start_position} "
                f"srcStopPosition={source.stop_position} "
                f"dstStartPosition={destination.start_position} "
                f"dstStopPosition={destination.stop_position}"
            )
        for name, each in (("src", source), ("dst", destination)):
            if base_of(each, join) != join:
                raise RequestRejected(
                    f"invalid migrate: join position is not on a segment boundary of the {name} "
                    f"recording seamPosition={join} startPosition={each.start_position} "
                    f"stopPosition={each.stop_position} "
                    f"termBufferLength={each.term_buffer_length} "
                    f"segmentFileLength={each.segment_file_length}"
                )

    def _require_movable(self, source: RecordingDescriptor, destination_id: int) -> list[int]:
        """Return the base positions of the files to move. Raises RequestRejected if a file cannot
        be moved.
        """
        first = base_of(source, source.start_position)
        last = base_of(source, source.stop_position)
        bases = []
        for base in range(first, last + 1, source.segment_file_length):
            if base == source.stop_position:
                continue
            old = self._resources.segment_path(source.recording_id, base)
            new = self._resources.segment_path(destination_id, base)
            if not old.exists():
                raise RequestRejected(f"missing src segment file: {old}")
            if new.exists():
                raise RequestRejected(f"dst segment file already exists: {new}")
            bases.append(base)
        return bases

    def _rename(self, source_id: int, destination_id: int, base: int) -> None:
        old = self._resources.segment_path(source_id, base)
        new = self._resources.segment_path(destination_id, base)
        try:
            os.rename(old, new)
        except OSError as error:
            raise StorageError(f"cannot rename {old} to {new}: {error.strerror}") from error
