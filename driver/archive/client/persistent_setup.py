"""Prepares a persistent subscription: finds the recording and starts a replay.

    AWAIT_ARCHIVE_CONNECTION -> SEND / AWAIT_LIST_RECORDING -> a replay, by the kind of its channel

    session specific    SEND / AWAIT_REPLAY -> ADD / AWAIT_REPLAY_SUBSCRIPTION
    dynamic port        ADD / AWAIT_REPLAY_SUBSCRIPTION -> AWAIT_REPLAY_CHANNEL_ENDPOINT
                          -> SEND / AWAIT_REPLAY
    response channel    ADD / AWAIT_REPLAY_SUBSCRIPTION -> ADD / AWAIT_REQUEST_PUBLICATION
                          -> SEND / AWAIT_REPLAY_TOKEN -> AWAIT_REPLAY_CHANNEL_ENDPOINT, if UDP
                          -> SEND / AWAIT_REPLAY

A counter contains the number of the current state. Source: archive-protocol 6.2.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import TypeVar

from windtunnel.driver.archive.client import control_channels
from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.errors import ArchiveError
from windtunnel.driver.archive.client.operations import listing
from windtunnel.driver.archive.client.operations import replay as replaying
from windtunnel.driver.archive.client.operations.replay import ReplayParams, session_id_of
from windtunnel.driver.archive.client.turns import Turns, advance, until
from windtunnel.driver.archive.protocol.codes import NULL_VALUE, ErrorCode
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri, uri_param
from windtunnel.driver.channel.uri import ChannelUri
from windtunnel.driver.client import Image, Subscription

_RESULT = TypeVar("_RESULT")

FROM_START = -1
FROM_LIVE = -2


class PersistentState(IntEnum):
    """The states of a persistent subscription."""

    AWAIT_ARCHIVE_CONNECTION = 0
    SEND_LIST_RECORDING_REQUEST = 1
    AWAIT_LIST_RECORDING_RESPONSE = 2
    SEND_REPLAY_REQUEST = 3
    AWAIT_REPLAY_RESPONSE = 4
    ADD_REPLAY_SUBSCRIPTION = 5
    AWAIT_REPLAY_SUBSCRIPTION = 6
    AWAIT_REPLAY_CHANNEL_ENDPOINT = 7
    ADD_REQUEST_PUBLICATION = 8
    AWAIT_REQUEST_PUBLICATION = 9
    SEND_REPLAY_TOKEN_REQUEST = 10
    AWAIT_REPLAY_TOKEN = 11
    REPLAY = 12
    ATTEMPT_SWITCH = 13
    ADD_LIVE_SUBSCRIPTION = 14
    AWAIT_LIVE = 15
    LIVE = 16
    FAILED = 17


@dataclass(frozen=True, kw_only=True)
class PersistentParams:
    """The recording and the live stream that a persistent subscription reads."""

    recording_id: int
    live_channel: str
    live_stream_id: int
    replay_channel: str
    replay_stream_id: int
    start_position: int = FROM_LIVE
    """The start position, FROM_START (-1) for the start of the recording, or FROM_LIVE (-2)."""

    def conclude(self) -> "PersistentParams":
        """Check every parameter. All errors are reported in one exception."""
        failures = []
        if self.recording_id < 0:
            failures.append(f"recording_id is {self.recording_id}, but must be at least 0")
        if self.start_position < FROM_LIVE:
            failures.append(f"start_position is {self.start_position}, but must be at least -2")
        for name in ("live_channel", "replay_channel"):
            try:
                uri.parse(getattr(self, name))
            except ConfigurationError as error:
                failures.append(f"{name}: {error}")
        if failures:
            raise ConfigurationError("; ".join(failures))
        return self


def unjoinable(replay_channel: str) -> ChannelUri:
    """Return the channel of a replay whose image, once lost, is not joined again."""
    return uri.parse(replay_channel).with_param(uri_param.REJOIN, False)


def require_one_medium(replay_channel: str, control_channel: str) -> None:
    """Raise ConfigurationError if a response channel for replays has another medium than the
    control channel. The archive finds the one by the other.
    """
    if not control_channels.is_response_channel(replay_channel):
        return
    replay, control = uri.parse(replay_channel), uri.parse(control_channel)
    if replay.media != control.media:
        raise ConfigurationError(
            f"replay_channel {replay_channel}: expected the medium of the archive's control "
            f"channel, {control.media}, because of control-mode=response"
        )


class FailureReason(Enum):
    """The reasons why a persistent subscription can fail."""

    GENERIC = auto()
    RECORDING_NOT_FOUND = auto()
    STREAM_ID_MISMATCH = auto()
    INVALID_START_POSITION = auto()


class StreamMismatchError(ArchiveError):
    """The recording and the live stream have different stream ids."""


def failure_reason(error: Exception) -> FailureReason:
    """Return the failure reason that corresponds to an exception."""
    if isinstance(error, StreamMismatchError):
        return FailureReason.STREAM_ID_MISMATCH
    if isinstance(error, ArchiveError):
        if error.code == ErrorCode.UNKNOWN_RECORDING:
            return FailureReason.RECORDING_NOT_FOUND
        if error.code == ErrorCode.INVALID_POSITION:
            return FailureReason.INVALID_START_POSITION
    return FailureReason.GENERIC


def require_recording(
    params: PersistentParams,
    descriptor: RecordingDescriptor | None,
    position: int,
    reached: int,
) -> RecordingDescriptor:
    """Check that a recording contains the position from which reading continues. Returns the
    recording's descriptor.

    Reading continues at `position`. `reached` is the highest position seen so far, whether
    replayed or live. Raises ArchiveError.
    """
    recording_id = params.recording_id
    if descriptor is None:
        raise ArchiveError(f"unknown recording {recording_id}", ErrorCode.UNKNOWN_RECORDING)
    if descriptor.stream_id != params.live_stream_id:
        raise StreamMismatchError(
            f"recording {recording_id}: expected stream {params.live_stream_id}, found stream "
            f"{descriptor.stream_id}"
        )
    start, stop = descriptor.start_position, descriptor.stop_position
    is_stopped = stop != NULL_VALUE
    if 0 <= position < start or (is_stopped and reached > stop):
        raise ArchiveError(
            f"recording {recording_id}: expected a position from {start} to {stop}, "
            f"found {reached}",
            ErrorCode.INVALID_POSITION,
        )
    return descriptor


@dataclass(frozen=True, slots=True)
class StartedReplay:
    """A replay that the archive has accepted, and the subscription that receives it."""

    subscription: Subscription
    session: ControlSession
    replay_id: int

    @property
    def image(self) -> Image | None:
        """The replay's image, or None if it has not arrived."""
        return self.subscription.image_by_session_id(session_id_of(self.replay_id))

    def close(self) -> None:
        """Stop the replay and close the subscription. Otherwise the replay would count as
        concurrent until the archive notices that it has no subscriber.
        """
        replaying.abandon_replay(self.session, self.replay_id)
        self.subscription.close()


class PersistentSetup:
    """Finds the recording and starts replays for a persistent subscription. Calls `enter` on each
    state change.
    """

    def __init__(
        self, params: PersistentParams, enter: Callable[[PersistentState], object]
    ) -> None:
        self._params, self._enter = params, enter
        channel = unjoinable(params.replay_channel)
        self._channel: ChannelUri = channel
        self._is_response = control_channels.is_response_channel(params.replay_channel)
        endpoint = channel.get(uri_param.ENDPOINT) or ""
        self._is_dynamic = channel.is_udp and endpoint.endswith(":0") and not self._is_response

    def _run_in_states(
        self, first: PersistentState, then: PersistentState, turns: Turns[_RESULT]
    ) -> Turns[_RESULT]:
        """Run an operation. Enters the state `first` before the request is sent, and the state
        `then` while the response is awaited.
        """
        self._enter(first)
        is_done, value = advance(turns)
        if is_done:
            return value  # type: ignore[return-value]  # the result may be None
        self._enter(then)
        yield
        return (yield from turns)

    def describe(self, session: ControlSession) -> Turns[RecordingDescriptor | None]:
        """Return the descriptor of the recording, or None if the archive does not have the
        recording.
        """
        descriptors: list[RecordingDescriptor] = []
        yield from self._run_in_states(
            PersistentState.SEND_LIST_RECORDING_REQUEST,
            PersistentState.AWAIT_LIST_RECORDING_RESPONSE,
            listing.list_recording(session, self._params.recording_id, descriptors.append),
        )
        return descriptors[0] if descriptors else None

    def replay(self, session: ControlSession, position: int) -> Turns[StartedReplay]:
        """Start a replay from the given position to the end of the recording."""
        if self._is_response:
            return (yield from self._by_response_channel(session, position))
        if self._is_dynamic:
            return (yield from self._by_resolved_port(session, position))
        replay_id = yield from self._start(session, position, str(self._channel))
        own = str(self._channel.with_param(uri_param.SESSION_ID, session_id_of(replay_id)))
        try:
            subscription = yield from self._subscribe(session, own)
        except BaseException:
            replaying.abandon_replay(session, replay_id)
            raise
        return StartedReplay(subscription, session, replay_id)

    def _by_resolved_port(self, session: ControlSession, position: int) -> Turns[StartedReplay]:
        subscription = yield from self._subscribe(session, str(self._channel))
        try:
            channel = yield from self._resolve(subscription)
            replay_id = yield from self._start(session, position, channel)
        except BaseException:
            subscription.close()
            raise
        return StartedReplay(subscription, session, replay_id)

    def _resolve(self, subscription: Subscription) -> Turns[str]:
        """Return the channel of the replay's subscription. If its port is 0, wait until the driver
        knows the port.
        """
        if self._channel.is_udp:
            self._enter(PersistentState.AWAIT_REPLAY_CHANNEL_ENDPOINT)
        return (yield from until(subscription.try_resolve_channel_endpoint_port))

    def _by_response_channel(self, session: ControlSession, position: int) -> Turns[StartedReplay]:
        subscription = yield from self._subscribe(session, str(self._channel))
        try:
            publication = yield from self._run_in_states(
                PersistentState.ADD_REQUEST_PUBLICATION,
                PersistentState.AWAIT_REQUEST_PUBLICATION,
                replaying.request_publication(session, subscription.registration_id),
            )
            try:
                token = yield from self._run_in_states(
                    PersistentState.SEND_REPLAY_TOKEN_REQUEST,
                    PersistentState.AWAIT_REPLAY_TOKEN,
                    replaying.request_replay_token(session, self._params.recording_id),
                )
                channel = yield from self._resolve(subscription)
                response = yield from self._run_in_states(
                    PersistentState.SEND_REPLAY_REQUEST,
                    PersistentState.AWAIT_REPLAY_RESPONSE,
                    replaying.replay_with_token(
                        session, publication, token, self._params.recording_id, channel,
                        self._params.replay_stream_id, ReplayParams(position=position),
                    ),
                )  # fmt: skip
            finally:
                publication.close()
        except BaseException:
            subscription.close()
            raise
        return StartedReplay(subscription, session, response.relevant_id)

    def _start(self, session: ControlSession, position: int, channel: str) -> Turns[int]:
        return (
            yield from self._run_in_states(
                PersistentState.SEND_REPLAY_REQUEST,
                PersistentState.AWAIT_REPLAY_RESPONSE,
                replaying.start_replay(
                    session, self._params.recording_id, channel, self._params.replay_stream_id,
                    ReplayParams(position=position),
                ),
            )
        )  # fmt: skip

    def _subscribe(self, session: ControlSession, channel: str) -> Turns[Subscription]:
        return (
            yield from self._run_in_states(
                PersistentState.ADD_REPLAY_SUBSCRIPTION,
                PersistentState.AWAIT_REPLAY_SUBSCRIPTION,
                replaying.add_subscription(session, channel, self._params.replay_stream_id),
            )
        )
