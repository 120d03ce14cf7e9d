"""Lists recordings and recording subscriptions, and requests recording positions.

Descriptors are passed to a handler as they arrive. A session can have one listing at a time: the
archive rejects a second listing with ACTIVE_LISTING. Source: archive-protocol 3.4, 3.5.
"""

from collections.abc import Callable

from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.errors import error_from_response
from windtunnel.driver.archive.client.turns import Turns
from windtunnel.driver.archive.protocol.codes import BooleanType, ControlResponseCode
from windtunnel.driver.archive.protocol.requests import (
    ArchiveIdRequest,
    FindLastMatchingRecordingRequest,
    ListRecordingRequest,
    ListRecordingsForUriRequest,
    ListRecordingsRequest,
    ListRecordingSubscriptionsRequest,
    MaxRecordedPositionRequest,
    RecordingPositionRequest,
    RecordingRequest,
    Request,
    StartPositionRequest,
    StopPositionRequest,
)
from windtunnel.driver.archive.protocol.responses import (
    ControlResponse,
    RecordingDescriptor,
    RecordingSubscriptionDescriptor,
)

DescriptorHandler = Callable[[RecordingDescriptor], object]
SubscriptionHandler = Callable[[RecordingSubscriptionDescriptor], object]


def list_recordings(
    session: ControlSession, from_recording_id: int, count: int, handler: DescriptorHandler
) -> Turns[int]:
    """List up to `count` recordings in order of their ids. Returns the number of listed recordings.
    `count` must be at least 1.
    """
    return (
        yield from _list(
            session, handler, count, ListRecordingsRequest,
            from_recording_id=from_recording_id, record_count=count,
        )
    )  # fmt: skip


def list_recordings_for_uri(
    session: ControlSession,
    from_recording_id: int,
    count: int,
    channel_fragment: str,
    stream_id: int,
    handler: DescriptorHandler,
) -> Turns[int]:
    """List recordings with a given stream id whose original channel contains a given string."""
    return (
        yield from _list(
            session, handler, count, ListRecordingsForUriRequest,
            from_recording_id=from_recording_id, record_count=count, stream_id=stream_id,
            channel=channel_fragment,
        )
    )  # fmt: skip


def list_recording(
    session: ControlSession, recording_id: int, handler: DescriptorHandler
) -> Turns[int]:
    """Pass the descriptor of one recording to the handler. Returns 1, or 0 if the recording is
    unknown.
    """
    return (yield from _list(session, handler, 1, ListRecordingRequest, recording_id=recording_id))


def list_recording_subscriptions(
    session: ControlSession,
    pseudo_index: int,
    count: int,
    channel_fragment: str,
    stream_id: int | None,
    handler: SubscriptionHandler,
) -> Turns[int]:
    """List the archive's recording subscriptions, starting at an index.

    With a `stream_id` of None, the subscriptions of all streams are listed.
    """
    return (
        yield from _list(
            session, handler, count, ListRecordingSubscriptionsRequest,
            pseudo_index=pseudo_index, subscription_count=count,
            apply_stream_id=BooleanType(stream_id is not None), stream_id=stream_id or 0,
            channel=channel_fragment,
        )
    )  # fmt: skip


def _list(
    session: ControlSession,
    handler: Callable[..., object],
    count: int,
    kind: type[Request],
    **fields: object,
) -> Turns[int]:
    if count < 1:
        raise ValueError(f"count={count}: expected at least 1")
    correlation_id = yield from session.begin(kind, fields)
    delivered = 0
    try:
        while delivered < count:
            response = yield from session.next_response(correlation_id, kind.__name__)
            if isinstance(response, RecordingDescriptor | RecordingSubscriptionDescriptor):
                delivered += 1
                handler(response)
            elif isinstance(response, ControlResponse):
                if response.code in (
                    ControlResponseCode.RECORDING_UNKNOWN,
                    ControlResponseCode.SUBSCRIPTION_UNKNOWN,
                ):
                    break
                raise error_from_response(kind.__name__, response)
    finally:
        session.end(correlation_id)
    return delivered


def find_last_matching_recording(
    session: ControlSession,
    min_recording_id: int,
    channel_fragment: str,
    stream_id: int,
    session_id: int,
) -> Turns[int]:
    """Return the id of the last recording with the given session id and stream id whose channel
    contains a given string.

    Returns -1 if no recording matches.
    """
    response = yield from session.request(
        FindLastMatchingRecordingRequest,
        min_recording_id=min_recording_id, session_id=session_id, stream_id=stream_id,
        channel=channel_fragment,
    )  # fmt: skip
    return response.relevant_id


def _position(
    session: ControlSession, kind: type[RecordingRequest], recording_id: int
) -> Turns[int]:
    response = yield from session.request(kind, recording_id=recording_id)
    return response.relevant_id


def start_position(session: ControlSession, recording_id: int) -> Turns[int]:
    """Return the start position of a recording."""
    return (yield from _position(session, StartPositionRequest, recording_id))


def stop_position(session: ControlSession, recording_id: int) -> Turns[int]:
    """Return the stop position of a recording, or -1 while the recording is active."""
    return (yield from _position(session, StopPositionRequest, recording_id))


def recording_position(session: ControlSession, recording_id: int) -> Turns[int]:
    """Return the recorded position of a recording, or -1 if the recording is not active."""
    return (yield from _position(session, RecordingPositionRequest, recording_id))


def max_recorded_position(session: ControlSession, recording_id: int) -> Turns[int]:
    """Return the recorded position of an active recording, or the stop position of a
    stopped one.
    """
    return (yield from _position(session, MaxRecordedPositionRequest, recording_id))


def archive_id(session: ControlSession) -> Turns[int]:
    """Request and return the id of the archive."""
    response = yield from session.request(ArchiveIdRequest)
    return response.relevant_id
