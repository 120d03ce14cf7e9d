"""Replaying a recording: to a subscription of ours, or of somebody else.

    replay_session_id   high 32 bits: a count of the archive   low 32 bits: the image's session id

Over a channel with `control-mode=response` the archive sends to whoever subscribed, and must be
told who that is: with a token, from a second request publication that names the subscription.
Source: archive-protocol 3.6 to 3.9.
"""

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
    """What of a recording is replayed, and how."""

    position: int = NULL_VALUE
    """Where it begins; -1: where the recording does."""
    length: int = NULL_VALUE
    """How many bytes; REPLAY_ALL_AND_FOLLOW (-1) until the recording ends, REPLAY_ALL_AND_STOP (-2)
    as far as it is now."""
    file_io_max_length: int = NULL_VALUE
    """The largest block that the archive reads at once; -1: as it likes."""
    bounding_limit_counter_id: int = NULL_VALUE
    """A counter of the archive's driver that says how far may be replayed; -1: none."""
    subscription_registration_id: int = NULL_VALUE
    """Over a response channel: of the subscription that it is for."""


EVERYTHING = ReplayParams()


def session_id_of(replay_session_id: int) -> int:
    """The session id of the image that a replay is."""
    low = replay_session_id & 0xFFFF_FFFF
    return low - (1 << 32) if low > I32_MAX else low


def start_replay(
    session: ControlSession,
    recording_id: int,
    channel: str,
    stream_id: int,
    params: ReplayParams = EVERYTHING,
) -> Turns[int]:
    """Send a recording to a channel. Returns the replay session id.

    It is there before anybody has to listen; what goes wrong later is an error of nobody's call.
    Over a response channel the correlation id is returned instead, as Aeron's client does.
    """
    if control_channels.is_response_channel(channel):
        return (yield from _replay_by_response(session, recording_id, channel, stream_id, params))
    kind, fields = _request(recording_id, channel, stream_id, params)
    answer = yield from session.ask(kind, **fields)
    return answer.relevant_id


def replay(
    session: ControlSession,
    recording_id: int,
    channel: str,
    stream_id: int,
    params: ReplayParams = EVERYTHING,
) -> Turns[Subscription]:
    """Send a recording to us. Returns the subscription that receives it and nothing else."""
    if control_channels.is_response_channel(channel):
        subscription = yield from subscribed(session, channel, stream_id)
        own_id = subscription.registration_id
        try:
            yield from _replay_by_response(
                session, recording_id, channel, stream_id, params, own_id
            )
        except BaseException:
            subscription.close()
            raise
        return subscription
    started = yield from start_replay(session, recording_id, channel, stream_id, params)
    own_channel = uri.parse(channel).with_param(uri_param.SESSION_ID, session_id_of(started))
    return (yield from subscribed(session, str(own_channel), stream_id))


def stop_replay(session: ControlSession, replay_session_id: int) -> Turns[None]:
    """End a replay at once; one that is unknown has ended already."""
    yield from session.ask(StopReplayRequest, replay_session_id=replay_session_id)


def stop_all_replays(session: ControlSession, recording_id: int = NULL_VALUE) -> Turns[None]:
    """End all replays of a recording at once; of all recordings with -1."""
    yield from session.ask(StopAllReplaysRequest, recording_id=recording_id)


def request_replay_token(session: ControlSession, recording_id: int) -> Turns[int]:
    """A token for one replay over a response channel; it is good for some seconds."""
    answer = yield from session.ask(ReplayTokenRequest, recording_id=recording_id)
    return answer.relevant_id


def _request(
    recording_id: int, channel: str, stream_id: int, params: ReplayParams, token: int = NULL_VALUE
) -> tuple[type[Request], dict[str, object]]:
    """The kind of request, and its fields."""
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


def subscribed(session: ControlSession, channel: str, stream_id: int) -> Turns[Subscription]:
    aeron = session.aeron
    asked = aeron.async_add_subscription(channel, stream_id)
    try:
        return (yield from until(lambda: aeron.get_subscription(asked)))
    except BaseException:
        aeron.abandon(asked)
        raise


def _replay_by_response(
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
            f"replay to {channel}: over a response channel expected "
            "subscription_registration_id, found none"
        )
    token = yield from request_replay_token(session, recording_id)
    publication = yield from request_publication(session, own_id)
    try:
        answer = yield from replay_with_token(
            session, publication, token, recording_id, channel, stream_id, params
        )
    finally:
        publication.close()
    return answer.correlation_id


def replay_with_token(
    session: ControlSession,
    publication: ExclusivePublication,
    token: int,
    recording_id: int,
    channel: str,
    stream_id: int,
    params: ReplayParams,
) -> Turns[ControlResponse]:
    """Send a recording to the subscription that a request publication is bound to."""
    kind, fields = _request(recording_id, channel, stream_id, params, token)
    correlation_id = yield from session.begin(kind, fields, publication)
    try:
        answer = yield from session.next_answer(correlation_id, kind.__name__)
    finally:
        session.end(correlation_id)
    return require_ok(answer, kind.__name__)


def request_publication(
    session: ControlSession, subscription_registration_id: int
) -> Turns[ExclusivePublication]:
    """A second way to the archive, whose answer is the subscription of a replay."""
    aeron, context = session.aeron, session.context
    channel = uri.parse(context.control_request_channel).without(uri_param.SESSION_ID)
    channel = channel.with_param(uri_param.TERM_LENGTH, REQUEST_TERM_LENGTH)
    channel = channel.with_param(uri_param.SPIES_SIMULATE_CONNECTION, False)
    text = control_channels.with_correlation(channel, subscription_registration_id)
    asked = aeron.async_add_exclusive_publication(text, context.control_request_stream_id)
    deadline_ns = session.clock.now_ns() + context.message_timeout_ns
    try:
        publication = yield from until(lambda: aeron.get_exclusive_publication(asked))
        while not publication.is_connected or publication.position_limit <= 0:
            if session.clock.now_ns() > deadline_ns:
                raise ArchiveTimeoutError(f"the archive does not listen to {text}")
            yield
    except BaseException:
        aeron.abandon(asked)
        raise
    return publication
