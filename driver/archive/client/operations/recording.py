"""Functions that start, extend and stop recordings.

The archive responds as soon as it has subscribed. It sends signals when recordings start and stop.
"""

from collections.abc import Callable
from typing import TypeVar

from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.errors import ArchiveError
from windtunnel.driver.archive.client.turns import Turns, until
from windtunnel.driver.archive.protocol.codes import BooleanType, ErrorCode, SourceLocation
from windtunnel.driver.archive.protocol.requests import (
    ExtendRecordingRequest2,
    StartRecordingRequest2,
    StopRecordingByIdentityRequest,
    StopRecordingRequest,
    StopRecordingSubscriptionRequest,
)
from windtunnel.driver.channel import uri, uri_param
from windtunnel.driver.client import ExclusivePublication, Publication

_PUBLICATION = TypeVar("_PUBLICATION", bound=Publication)


def start_recording(
    session: ControlSession,
    channel: str,
    stream_id: int,
    source_location: SourceLocation = SourceLocation.REMOTE,
    *,
    auto_stop: bool = False,
) -> Turns[int]:
    """Record every image of a stream. Returns the id of the archive's subscription.

    With `auto_stop`, the subscription ends when its first image ends.
    """
    response = yield from session.request(
        StartRecordingRequest2,
        stream_id=stream_id, source_location=source_location,
        auto_stop=BooleanType(auto_stop), channel=channel,
    )  # fmt: skip
    return response.relevant_id


def extend_recording(
    session: ControlSession,
    recording_id: int,
    channel: str,
    stream_id: int,
    source_location: SourceLocation = SourceLocation.REMOTE,
    *,
    auto_stop: bool = False,
) -> Turns[int]:
    """Continue a stopped recording. Returns the id of the archive's subscription.

    The publication must begin at the recording's stop position, with the same initial term id, term
    length and MTU.
    """
    response = yield from session.request(
        ExtendRecordingRequest2,
        recording_id=recording_id, stream_id=stream_id, source_location=source_location,
        auto_stop=BooleanType(auto_stop), channel=channel,
    )  # fmt: skip
    return response.relevant_id


def stop_recording(session: ControlSession, channel: str, stream_id: int) -> Turns[None]:
    """Stop recording a channel and stream. Raises ArchiveError with the code UNKNOWN_SUBSCRIPTION
    if this stream is not being recorded.
    """
    yield from session.request(StopRecordingRequest, stream_id=stream_id, channel=channel)


def try_stop_recording(session: ControlSession, channel: str, stream_id: int) -> Turns[bool]:
    """Stop recording a channel and stream. Returns whether this stream was being recorded."""
    return (yield from unless_unknown(stop_recording(session, channel, stream_id)))


def stop_recording_subscription(session: ControlSession, subscription_id: int) -> Turns[None]:
    """Stop recording a subscription. Raises ArchiveError with the code UNKNOWN_SUBSCRIPTION if the
    subscription id is unknown.
    """
    yield from session.request(StopRecordingSubscriptionRequest, subscription_id=subscription_id)


def try_stop_recording_subscription(session: ControlSession, subscription_id: int) -> Turns[bool]:
    """Stop recording a subscription. Returns whether the subscription existed."""
    return (yield from unless_unknown(stop_recording_subscription(session, subscription_id)))


def stop_recording_by_identity(session: ControlSession, recording_id: int) -> Turns[bool]:
    """Stop one recording, given its recording id. Returns whether the recording was active."""
    response = yield from session.request(StopRecordingByIdentityRequest, recording_id=recording_id)
    return response.relevant_id != 0


def stop_recording_publication(session: ControlSession, publication: Publication) -> Turns[None]:
    """Stop recording a publication that was added with `add_recorded_publication`."""
    yield from stop_recording(session, recorded_channel(publication), publication.stream_id)


def add_recorded_publication(
    session: ControlSession, channel: str, stream_id: int
) -> Turns[Publication]:
    """Add a publication that is recorded from its start.

    Raises ArchiveError if the publication already existed.
    """
    aeron = session.aeron
    registration_id = aeron.async_add_publication(channel, stream_id)
    return (yield from _record(session, registration_id, aeron.get_publication))


def add_recorded_exclusive_publication(
    session: ControlSession, channel: str, stream_id: int
) -> Turns[ExclusivePublication]:
    """Add an exclusive publication that is recorded from its start."""
    aeron = session.aeron
    registration_id = aeron.async_add_exclusive_publication(channel, stream_id)
    return (yield from _record(session, registration_id, aeron.get_exclusive_publication))


def recorded_channel(publication: Publication) -> str:
    """Return a publication's channel with its session id added, so that the archive records only
    this publication.
    """
    channel = uri.parse(publication.channel)
    return str(channel.with_param(uri_param.SESSION_ID, publication.session_id))


def _record(
    session: ControlSession, registration_id: int, poll: Callable[[int], _PUBLICATION | None]
) -> Turns[_PUBLICATION]:
    try:
        publication = yield from until(lambda: poll(registration_id))
    except BaseException:
        session.aeron.abandon(registration_id)
        raise
    try:
        if not publication.is_original:
            raise ArchiveError(
                f"cannot record from the start: the publication on {publication.channel} stream "
                f"{publication.stream_id} already exists"
            )
        yield from start_recording(
            session, recorded_channel(publication), publication.stream_id, SourceLocation.LOCAL
        )
    except BaseException:
        publication.close()
        raise
    return publication


def unless_unknown(
    stopping: Turns[None], code: ErrorCode = ErrorCode.UNKNOWN_SUBSCRIPTION
) -> Turns[bool]:
    """Run an operation that stops a recording. Returns False if the archive does not know the
    recording or subscription, or else True.
    """
    try:
        yield from stopping
    except ArchiveError as error:
        if error.code != code:
            raise
        return False
    return True
