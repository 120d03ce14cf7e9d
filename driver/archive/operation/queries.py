"""Handles recording queries that have a single response, and channel updates.

Source: archive-protocol 3.4, 3.5, 3.14, 3.15.
"""

from dataclasses import replace

from windtunnel.driver.archive.control import retained_channel
from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.control_session import ControlSession
from windtunnel.driver.archive.control.request_rejected import RequestRejected
from windtunnel.driver.archive.operation.listings import require_no_listing
from windtunnel.driver.archive.protocol.codes import NULL_VALUE, ErrorCode
from windtunnel.driver.archive.protocol.requests import (
    ArchiveIdRequest,
    FindLastMatchingRecordingRequest,
    MaxRecordedPositionRequest,
    RecordingPositionRequest,
    StartPositionRequest,
    StopPositionRequest,
    UpdateChannelRequest,
)
from windtunnel.driver.archive.recording.recordings import Recordings
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri


class Queries:
    """Responds to queries, using the catalog and the active recordings."""

    def __init__(self, resources: ArchiveResources, recordings: Recordings) -> None:
        self._resources, self._recordings = resources, recordings

    def archive_id(self, session: ControlSession, request: ArchiveIdRequest) -> None:
        """Send the archive id."""
        session.responses.ok(request.correlation_id, self._resources.archive_id)

    def start_position(self, session: ControlSession, request: StartPositionRequest) -> None:
        """Send the start position of a recording."""
        descriptor = self._resources.recording(request.recording_id)
        session.responses.ok(request.correlation_id, descriptor.start_position)

    def stop_position(self, session: ControlSession, request: StopPositionRequest) -> None:
        """Send the stop position of a recording, or -1 while the recording is active."""
        descriptor = self._resources.recording(request.recording_id)
        session.responses.ok(request.correlation_id, descriptor.stop_position)

    def recording_position(
        self, session: ControlSession, request: RecordingPositionRequest
    ) -> None:
        """Send the recorded position of a recording, or -1 if the recording is not active."""
        self._resources.recording(request.recording_id)
        active = self._recordings.active(request.recording_id)
        session.responses.ok(
            request.correlation_id, NULL_VALUE if active is None else active.position
        )

    def max_recorded_position(
        self, session: ControlSession, request: MaxRecordedPositionRequest
    ) -> None:
        """Send the recorded position of an active recording, or the stop position of a
        stopped one.
        """
        descriptor = self._resources.recording(request.recording_id)
        active = self._recordings.active(request.recording_id)
        session.responses.ok(
            request.correlation_id, descriptor.stop_position if active is None else active.position
        )

    def find_last_matching(
        self, session: ControlSession, request: FindLastMatchingRecordingRequest
    ) -> None:
        """Send the id of the last matching recording, or -1 if no recording matches.

        A recording matches if it has the requested session and stream id, and its channel contains
        the requested string.
        """
        lowest = request.min_recording_id
        if lowest < 0:
            raise RequestRejected(
                f"minimum recording id {lowest}: expected 0 or more", ErrorCode.UNKNOWN_RECORDING
            )
        catalog = self._resources.catalog
        for recording_id in reversed(catalog.recording_ids):
            if recording_id < lowest:
                break
            descriptor = catalog.descriptor(recording_id)
            if descriptor is not None and (
                descriptor.session_id == request.session_id
                and descriptor.stream_id == request.stream_id
                and request.channel in descriptor.original_channel
            ):
                session.responses.ok(request.correlation_id, recording_id)
                return
        session.responses.ok(request.correlation_id, NULL_VALUE)

    def update_channel(self, session: ControlSession, request: UpdateChannelRequest) -> None:
        """Change the channel of a recording. The archive does not respond if the channel is
        invalid.
        """
        require_no_listing(session)
        descriptor = self._resources.catalog.descriptor(request.recording_id)
        if descriptor is None:
            session.responses.recording_unknown(request.correlation_id, request.recording_id)
            return
        try:
            stripped = retained_channel.retained(uri.parse(request.channel))
        except ConfigurationError as error:
            self._resources.errors.warn(f"update of recording {request.recording_id}: {error}")
            return
        self._resources.catalog.replace(
            replace(
                descriptor, original_channel=request.channel,
                stripped_channel=retained_channel.text(stripped),
            )
        )  # fmt: skip
        session.responses.ok(request.correlation_id)
