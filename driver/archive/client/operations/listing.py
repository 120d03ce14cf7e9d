"""Asking what an archive has: descriptors of recordings, subscriptions, positions.

Descriptors are handed out one by one as they come. One listing at a time per session: the archive
refuses a second with ACTIVE_LISTING. Source: archive-protocol 3.4, 3.5.
"""

from collections.abc import Callable

from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.errors import refusal
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
    """Recordings from an id on. Returns how many were handed out; `count` from 1."""
    return (
        yield from _listed(
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
    """The same, of one stream whose original channel contains a text."""
    return (
        yield from _listed(
            session, handler, count, ListRecordingsForUriRequest,
            from_recording_id=from_recording_id, record_count=count, stream_id=stream_id,
            channel=channel_fragment,
        )
    )  # fmt: skip


def list_recording(
    session: ControlSession, recording_id: int, handler: DescriptorHandler
) -> Turns[int]:
    """One recording. Returns 1, or 0 where there is none of that id."""
    return (
        yield from _listed(session, handler, 1, ListRecordingRequest, recording_id=recording_id)
    )


def list_recording_subscriptions(
    session: ControlSession,
    pseudo_index: int,
    count: int,
    channel_fragment: str,
    stream_id: int | None,
    handler: SubscriptionHandler,
) -> Turns[int]:
    """What is subscribed for recording, from an index on; of all streams where that is None."""
    return (
        yield from _listed(
            session, handler, count, ListRecordingSubscriptionsRequest,
            pseudo_index=pseudo_index, subscription_count=count,
            apply_stream_id=BooleanType(stream_id is not None), stream_id=stream_id or 0,
            channel=channel_fragment,
        )
    )  # fmt: skip


def _listed(
    session: ControlSession,
    handler: Callable[..., object],
    count: int,
    kind: type[Request],
    **fields: object,
) -> Turns[int]:
    if count < 1:
        raise ValueError(f"count is {count}, but an archive answers only to 1 and more")
    correlation_id = yield from session.begin(kind, fields)
    delivered = 0
    try:
        while delivered < count:
            answer = yield from session.next_answer(correlation_id, kind.__name__)
            if isinstance(answer, RecordingDescriptor | RecordingSubscriptionDescriptor):
                delivered += 1
                handler(answer)
            elif isinstance(answer, ControlResponse):
                if answer.code in (
                    ControlResponseCode.RECORDING_UNKNOWN,
                    ControlResponseCode.SUBSCRIPTION_UNKNOWN,
                ):
                    break
                raise refusal(kind.__name__, answer)
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
    """The newest recording of a session. Returns its id, or -1."""
    answer = yield from session.ask(
        FindLastMatchingRecordingRequest,
        min_recording_id=min_recording_id, session_id=session_id, stream_id=stream_id,
        channel=channel_fragment,
    )  # fmt: skip
    return answer.relevant_id


def _position(
    session: ControlSession, kind: type[RecordingRequest], recording_id: int
) -> Turns[int]:
    answer = yield from session.ask(kind, recording_id=recording_id)
    return answer.relevant_id


def start_position(session: ControlSession, recording_id: int) -> Turns[int]:
    """Where a recording begins."""
    return (yield from _position(session, StartPositionRequest, recording_id))


def stop_position(session: ControlSession, recording_id: int) -> Turns[int]:
    """Where a recording stopped; -1 while it is active."""
    return (yield from _position(session, StopPositionRequest, recording_id))


def recording_position(session: ControlSession, recording_id: int) -> Turns[int]:
    """How far a recording is; -1 once it has stopped."""
    return (yield from _position(session, RecordingPositionRequest, recording_id))


def max_recorded_position(session: ControlSession, recording_id: int) -> Turns[int]:
    """How far a recording is, or where it stopped."""
    return (yield from _position(session, MaxRecordedPositionRequest, recording_id))


def archive_id(session: ControlSession) -> Turns[int]:
    """The archive's id, asked for anew."""
    answer = yield from session.ask(ArchiveIdRequest)
    return answer.relevant_id
