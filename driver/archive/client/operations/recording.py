"""Recording a stream: start, extend, stop.

The archive answers as soon as it has subscribed; what becomes of the recording is told by signals.
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
    """Record each image of a stream. Returns the id of the archive's subscription.

    `auto_stop` ends the subscription with its first image.
    """
    answer = yield from session.ask(
        StartRecordingRequest2,
        stream_id=stream_id, source_location=source_location,
        auto_stop=BooleanType(auto_stop), channel=channel,
    )  # fmt: skip
    return answer.relevant_id


def extend_recording(
    session: ControlSession,
    recording_id: int,
    channel: str,
    stream_id: int,
    source_location: SourceLocation = SourceLocation.REMOTE,
    *,
    auto_stop: bool = False,
) -> Turns[int]:
    """Record on where a recording stopped. Returns the id of the archive's subscription.

    The publication must begin there, with the same initial term id, term length and MTU.
    """
    answer = yield from session.ask(
        ExtendRecordingRequest2,
        recording_id=recording_id, stream_id=stream_id, source_location=source_location,
        auto_stop=BooleanType(auto_stop), channel=channel,
    )  # fmt: skip
    return answer.relevant_id


def stop_recording(session: ControlSession, channel: str, stream_id: int) -> Turns[None]:
    """Stop what was started with this channel. Raises UNKNOWN_SUBSCRIPTION if nothing was."""
    yield from session.ask(StopRecordingRequest, stream_id=stream_id, channel=channel)


def try_stop_recording(session: ControlSession, channel: str, stream_id: int) -> Turns[bool]:
    """The same. Returns whether there was anything to stop."""
    return (yield from unless_unknown(stop_recording(session, channel, stream_id)))


def stop_recording_subscription(session: ControlSession, subscription_id: int) -> Turns[None]:
    """Stop what a start or an extension returned. Raises UNKNOWN_SUBSCRIPTION."""
    yield from session.ask(StopRecordingSubscriptionRequest, subscription_id=subscription_id)


def try_stop_recording_subscription(session: ControlSession, subscription_id: int) -> Turns[bool]:
    """The same. Returns whether there was anything to stop."""
    return (yield from unless_unknown(stop_recording_subscription(session, subscription_id)))


def stop_recording_by_identity(session: ControlSession, recording_id: int) -> Turns[bool]:
    """Stop one recording. Returns whether it was active."""
    answer = yield from session.ask(StopRecordingByIdentityRequest, recording_id=recording_id)
    return answer.relevant_id != 0


def stop_recording_publication(session: ControlSession, publication: Publication) -> Turns[None]:
    """Stop recording a publication of `add_recorded_publication`."""
    yield from stop_recording(session, recorded_channel(publication), publication.stream_id)


def add_recorded_publication(
    session: ControlSession, channel: str, stream_id: int
) -> Turns[Publication]:
    """A publication that is recorded from its beginning. Raises ArchiveError if it was shared."""
    aeron = session.aeron
    asked = aeron.async_add_publication(channel, stream_id)
    return (yield from _recorded(session, asked, aeron.get_publication))


def add_recorded_exclusive_publication(
    session: ControlSession, channel: str, stream_id: int
) -> Turns[ExclusivePublication]:
    """The same for one writing thread."""
    aeron = session.aeron
    asked = aeron.async_add_exclusive_publication(channel, stream_id)
    return (yield from _recorded(session, asked, aeron.get_exclusive_publication))


def recorded_channel(publication: Publication) -> str:
    """The channel on which an archive hears this publication and no other."""
    channel = uri.parse(publication.channel)
    return str(channel.with_param(uri_param.SESSION_ID, publication.session_id))


def _recorded(
    session: ControlSession, asked: int, look: Callable[[int], _PUBLICATION | None]
) -> Turns[_PUBLICATION]:
    try:
        publication = yield from until(lambda: look(asked))
    except BaseException:
        session.aeron.abandon(asked)
        raise
    try:
        if not publication.is_original:
            raise ArchiveError(
                f"the publication of {publication.channel} stream {publication.stream_id} was "
                f"there before, and its beginning may be gone: expected one of our own"
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
    """Whether stopping found what it was to stop."""
    try:
        yield from stopping
    except ArchiveError as error:
        if error.code != code:
            raise
        return False
    return True
