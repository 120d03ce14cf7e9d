"""Questions about recordings that have one answer, and their channels.

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
    """Answers them from the catalog and from what is being recorded."""

    def __init__(self, facilities: ArchiveResources, recordings: Recordings) -> None:
        self._facilities, self._recordings = facilities, recordings

    def archive_id(self, session: ControlSession, request: ArchiveIdRequest) -> None:
        """Who this archive is."""
        session.ok(request.correlation_id, self._facilities.archive_id)

    def start_position(self, session: ControlSession, request: StartPositionRequest) -> None:
        """Where it starts."""
        found = self._facilities.recording(request.recording_id)
        session.ok(request.correlation_id, found.start_position)

    def stop_position(self, session: ControlSession, request: StopPositionRequest) -> None:
        """Where it stopped; -1 while it goes on."""
        found = self._facilities.recording(request.recording_id)
        session.ok(request.correlation_id, found.stop_position)

    def recording_position(
        self, session: ControlSession, request: RecordingPositionRequest
    ) -> None:
        """Up to where it is recorded; -1 where it does not go on."""
        self._facilities.recording(request.recording_id)
        active = self._recordings.active(request.recording_id)
        session.ok(request.correlation_id, NULL_VALUE if active is None else active.position)

    def max_recorded_position(
        self, session: ControlSession, request: MaxRecordedPositionRequest
    ) -> None:
        """Up to where there is data, whether it goes on or not."""
        found = self._facilities.recording(request.recording_id)
        active = self._recordings.active(request.recording_id)
        session.ok(
            request.correlation_id, found.stop_position if active is None else active.position
        )

    def find_last_matching(
        self, session: ControlSession, request: FindLastMatchingRecordingRequest
    ) -> None:
        """The newest of a session and stream whose original channel contains a text; -1 if none."""
        lowest = request.min_recording_id
        if lowest < 0:
            raise RequestRejected(
                f"min recording id {lowest}: expected 0 or more", ErrorCode.UNKNOWN_RECORDING
            )
        catalog = self._facilities.catalog
        for recording_id in reversed(catalog.recording_ids):
            if recording_id < lowest:
                break
            found = catalog.descriptor(recording_id)
            if found is not None and (
                found.session_id == request.session_id
                and found.stream_id == request.stream_id
                and request.channel in found.original_channel
            ):
                session.ok(request.correlation_id, recording_id)
                return
        session.ok(request.correlation_id, NULL_VALUE)

    def update_channel(self, session: ControlSession, request: UpdateChannelRequest) -> None:
        """Change what a descriptor says; a channel that makes no sense is not answered."""
        require_no_listing(session)
        found = self._facilities.catalog.descriptor(request.recording_id)
        if found is None:
            session.recording_unknown(request.correlation_id, request.recording_id)
            return
        try:
            stripped = retained_channel.retained(uri.parse(request.channel))
        except ConfigurationError as error:
            self._facilities.errors.warn(f"update of recording {request.recording_id}: {error}")
            return
        self._facilities.catalog.replace(
            replace(
                found, original_channel=request.channel,
                stripped_channel=retained_channel.text(stripped),
            )
        )  # fmt: skip
        session.ok(request.correlation_id)
