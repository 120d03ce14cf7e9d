"""Handles the requests of clients to start, extend and stop recordings.

Source: archive-protocol 3.1 to 3.3.
"""

from windtunnel.driver.archive.control import retained_channel
from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.control_session import ControlSession
from windtunnel.driver.archive.control.request_rejected import RequestRejected
from windtunnel.driver.archive.protocol.codes import BooleanType, ErrorCode, SourceLocation
from windtunnel.driver.archive.protocol.requests import (
    ExtendRecordingRequest,
    ExtendRecordingRequest2,
    StartRecordingRequest,
    StartRecordingRequest2,
    StopRecordingByIdentityRequest,
    StopRecordingRequest,
    StopRecordingSubscriptionRequest,
)
from windtunnel.driver.archive.recording.image_recording import require_stream
from windtunnel.driver.archive.recording.recorded_stream import ActiveRecording, RecordedStream
from windtunnel.driver.archive.recording.recordings import Recordings
from windtunnel.driver.channel import uri

_Start = StartRecordingRequest | StartRecordingRequest2
_Extend = ExtendRecordingRequest | ExtendRecordingRequest2


class RecordingRequests:
    """Handles the requests to record of all clients of one archive."""

    def __init__(self, resources: ArchiveResources, recordings: Recordings) -> None:
        self._resources, self._recordings = resources, recordings

    def start(self, session: ControlSession, request: _Start) -> None:
        """Record the images of a subscription."""
        self._recordings.require_slot()
        self._resources.require_space()
        stream = self._create_stream(session, request)
        self._recordings.add(stream, is_spy=request.source_location == SourceLocation.LOCAL)

    def extend(self, session: ControlSession, request: _Extend) -> None:
        """Extend a stopped recording."""
        self._recordings.require_slot()
        recording = self._resources.recording(request.recording_id)
        require_stream(recording, request.stream_id)
        self._recordings.require_extendable(recording)
        self._resources.require_space()
        stream = self._create_stream(session, request)
        stream.extended_id = request.recording_id
        self._recordings.add(stream, is_spy=request.source_location == SourceLocation.LOCAL)

    def stop_by_channel(self, session: ControlSession, request: StopRecordingRequest) -> None:
        """Stop recording a channel and stream."""
        key = retained_channel.stream_key(request.stream_id, uri.parse(request.channel))
        stream = self._recordings.by_key(key)
        if stream is None:
            raise RequestRejected(
                f"no recording of stream {request.stream_id} on {request.channel}",
                ErrorCode.UNKNOWN_SUBSCRIPTION,
            )
        session.responses.ok(request.correlation_id)
        self._recordings.stop(stream)

    def stop_by_subscription(
        self, session: ControlSession, request: StopRecordingSubscriptionRequest
    ) -> None:
        """Stop recording a subscription."""
        expected = request.subscription_id
        matching = (each for each in self._recordings.streams if each.subscription_id == expected)
        stream = next(matching, None)
        if stream is None:
            raise RequestRejected(
                f"no recording has subscription id {expected}", ErrorCode.UNKNOWN_SUBSCRIPTION
            )
        session.responses.ok(request.correlation_id)
        self._recordings.stop(stream)

    def stop_by_identity(
        self, session: ControlSession, request: StopRecordingByIdentityRequest
    ) -> None:
        """Stop one recording. Also stops recording new images of its subscription. The response
        says whether the subscription had not been stopped before.
        """
        self._resources.recording(request.recording_id)
        active = self._recordings.active(request.recording_id)
        is_found = isinstance(active, ActiveRecording) and not active.stream.is_over
        session.responses.ok(request.correlation_id, int(is_found))
        if isinstance(active, ActiveRecording):
            self._recordings.stop_recording(active)

    def _create_stream(self, session: ControlSession, request: _Start | _Extend) -> RecordedStream:
        """Create a RecordedStream from a client's request, without subscribing to the stream.

        Raises ConfigurationError.
        """
        parsed = uri.parse(request.channel)
        stripped = retained_channel.text(retained_channel.retained(parsed))
        return RecordedStream(
            session, request.correlation_id, request.stream_id, request.channel, stripped,
            retained_channel.stream_key(request.stream_id, parsed),
            getattr(request, "auto_stop", BooleanType.FALSE) == BooleanType.TRUE,
        )  # fmt: skip
