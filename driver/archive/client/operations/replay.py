"""Functions that replay a recording, to a new subscription or to a given channel.

    replay_session_id   high 32 bits: a count of the archive   low 32 bits: the image's session id

On a channel with `control-mode=response`, the archive sends to a subscription that the request must
identify. The request is sent with a token, on a second request publication whose channel contains
the registration id of the subscription.
Source: archive-protocol 3.6 to 3.9.
"""

from contextlib import suppress
from dataclasses import dataclass

from windtunnel.driver.archive.client import control_channels
from windtunnel.driver.archive.client.control_session import ControlSession, require_ok
from windtunnel.driver.archive.client.errors import ArchiveError, ArchiveTimeoutError
from windtunnel.driver.archive.client.turns import Turns, until
from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.protocol.requests import (
    BoundedReplayRequest,
    ReplayRequest,
    ReplayTokenRequest,
    Request,
    StopAllReplaysRequest,
    StopReplayRequest,
)
from windtunnel.driver.archive.protocol.responses import ControlResponse
from windtunnel.driver.base.arith import I32_MAX
from windtunnel.driver.channel import uri, uri_param
from windtunnel.driver.client import ExclusivePublication, Subscription

REQUEST_TERM_LENGTH = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class ReplayParams:
    """The range of a replay, and the options with which the archive reads and sends it."""

    position: int = NULL_VALUE
    """The position at which the replay begins, or -1 for the start of the recording."""
    length: int = NULL_VALUE
    """The length in bytes, REPLAY_ALL_AND_FOLLOW (-1) to replay until the recording ends, or
    REPLAY_ALL_AND_STOP (-2) to replay up to its current position.
    """
    file_io_max_length: int = NULL_VALUE
    """The maximum length of a block that the archive reads at once, or -1 for the archive's
    default.
    """
    bounding_limit_counter_id: int = NULL_VALUE
    """The id of a counter, in the archive's driver, that limits the replay, or -1 for no limit."""
    subscription_registration_id: int = NULL_VALUE
    """For a response channel, the registration id of the subscription that receives the replay."""


EVERYTHING = ReplayParams()


def session_id_of(replay_session_id: int) -> int:
    """Return the session id of a replay's image: the low 32 bits of the replay session id."""
    low = replay_session_id & 0xFFFF_FFFF
    return low - (1 << 32) if low > I32_MAX else low


def start_replay(
    session: ControlSession,
    recording_id: int,
    channel: str,
    stream_id: int,
    params: ReplayParams = EVERYTHING,
) -> Turns[int]:
    """Replay a recording to a channel. Returns the replay session id.

    The archive responds before a subscriber is needed. Later errors are unclaimed. For a response
    channel, the function returns the correlation id instead, as Aeron's client does.
    """
    if control_channels.is_response_channel(channel):
        return (
            yield from _replay_to_response_channel(
                session, recording_id, channel, stream_id, params
            )
        )
    kind, fields = _request(recording_id, channel, stream_id, params)
    response = yield from session.request(kind, **fields)
    return response.relevant_id


def replay(
    session: ControlSession,
    recording_id: int,
    channel: str,
    stream_id: int,
    params: ReplayParams = EVERYTHING,
) -> Turns[Subscription]:
    """Replay a recording. Returns a subscription that receives only this replay."""
    if control_channels.is_response_channel(channel):
        subscription = yield from add_subscription(session, channel, stream_id)
        own_id = subscription.registration_id
        try:
            yield from _replay_to_response_channel(
                session, recording_id, channel, stream_id, params, own_id
            )
        except BaseException:
            subscription.close()
            raise
        return subscription
    replay_id = yield from start_replay(session, recording_id, channel, stream_id, params)
    own_channel = uri.parse(channel).with_param(uri_param.SESSION_ID, session_id_of(replay_id))
    return (yield from add_subscription(session, str(own_channel), stream_id))


def stop_replay(session: ControlSession, replay_session_id: int) -> Turns[None]:
    """Stop a replay immediately. It is not an error if the replay has already ended."""
    yield from session.request(StopReplayRequest, replay_session_id=replay_session_id)


def abandon_replay(session: ControlSession, replay_session_id: int) -> None:
    """Ask the archive to stop a replay, without waiting for a response. Errors are ignored, because
    a replay without subscribers ends anyway, but later.
    """
    if session.is_closed:
        return
    request = StopReplayRequest(
        control_session_id=session.control_session_id,
        correlation_id=session.aeron.next_correlation_id(), replay_session_id=replay_session_id,
    )  # fmt: skip
    with suppress(ArchiveError):
        for _ in session.send(request):
            pass


def stop_all_replays(session: ControlSession, recording_id: int = NULL_VALUE) -> Turns[None]:
    """Stop all replays of a recording immediately. With recording id -1, stop all replays of the
    archive.
    """
    yield from session.request(StopAllReplaysRequest, recording_id=recording_id)


def request_replay_token(session: ControlSession, recording_id: int) -> Turns[int]:
    """Request a token for one replay over a response channel. The token expires after the archive's
    connect timeout.
    """
    response = yield from session.request(ReplayTokenRequest, recording_id=recording_id)
    return response.relevant_id


def _request(
    recording_id: int, channel: str, stream_id: int, params: ReplayParams, token: int = NULL_VALUE
) -> tuple[type[Request], dict[str, object]]:
    """Return the message class and the fields of a bounded or unbounded replay request."""
    fields: dict[str, object] = {
        "recording_id": recording_id,
        "position": params.position,
        "length": params.length,
        "replay_stream_id": stream_id,
        "file_io_max_length": params.file_io_max_length,
        "replay_token": token,
        "replay_channel": channel,
    }
    if params.bounding_limit_counter_id == NULL_VALUE:
        return ReplayRequest, fields
    return BoundedReplayRequest, fields | {"limit_counter_id": params.bounding_limit_counter_id}


def add_subscription(session: ControlSession, channel: str, stream_id: int) -> Turns[Subscription]:
    """Add a subscription and wait until it is ready."""
    aeron = session.aeron
    registration_id = aeron.async_add_subscription(channel, stream_id)
    try:
        return (yield from until(lambda: aeron.get_subscription(registration_id)))
    except BaseException:
        aeron.abandon(registration_id)
        raise


def _replay_to_response_channel(
    session: ControlSession,
    recording_id: int,
    channel: str,
    stream_id: int,
    params: ReplayParams,
    own_id: int = NULL_VALUE,
) -> Turns[int]:
    own_id = own_id if own_id != NULL_VALUE else params.subscription_registration_id
    if own_id == NULL_VALUE:
        raise ArchiveError(
            f"replay to {channel}: a response channel requires subscription_registration_id"
        )
    token = yield from request_replay_token(session, recording_id)
    publication = yield from request_publication(session, own_id)
    try:
        response = yield from replay_with_token(
            session, publication, token, recording_id, channel, stream_id, params
        )
    finally:
        publication.close()
    return response.correlation_id


def replay_with_token(
    session: ControlSession,
    publication: ExclusivePublication,
    token: int,
    recording_id: int,
    channel: str,
    stream_id: int,
    params: ReplayParams,
) -> Turns[ControlResponse]:
    """Start a replay over a response channel. The replay request contains a token, and is sent on a
    second request publication.
    """
    kind, fields = _request(recording_id, channel, stream_id, params, token)
    correlation_id = yield from session.begin(kind, fields, publication)
    try:
        response = yield from session.next_response(correlation_id, kind.__name__)
    finally:
        session.end(correlation_id)
    return require_ok(response, kind.__name__)


def request_publication(
    session: ControlSession, subscription_registration_id: int
) -> Turns[ExclusivePublication]:
    """Add a second request publication whose channel identifies the subscription for the replay."""
    aeron, context = session.aeron, session.context
    channel = uri.parse(context.control_request_channel).without(uri_param.SESSION_ID)
    channel = channel.with_param(uri_param.TERM_LENGTH, REQUEST_TERM_LENGTH)
    channel = channel.with_param(uri_param.SPIES_SIMULATE_CONNECTION, False)
    text = control_channels.with_correlation(channel, subscription_registration_id)
    registration_id = aeron.async_add_exclusive_publication(text, context.control_request_stream_id)
    deadline_ns = session.clock.now_ns() + context.message_timeout_ns
    try:
        publication = yield from until(lambda: aeron.get_exclusive_publication(registration_id))
        while not publication.is_connected or publication.position_limit <= 0:
            if session.clock.now_ns() > deadline_ns:
                raise ArchiveTimeoutError(f"timed out connecting to the archive on {text}")
            yield
    except BaseException:
        aeron.abandon(registration_id)
        raise
    return publication
