"""Reads a stream through a single image, first from a replay of its recording and then from the
live stream.

    RESOLVE_REPLAY_PORT -> GET_RECORDING_POSITION -> REPLAY -> CATCHUP <-> ATTEMPT_LIVE_JOIN
                                                                              |
                                                       MERGED, FAILED, CLOSED <

The subscription has `control-mode=manual`. It and the replay have the session id of the recorded
stream, so both sources feed one image. When the replay has nearly caught up, the live destination
is added. Once both sources are received and no data is missing, the replay destination is removed.

Any error on the control session fails the merge, even if another operation caused it. Use a
separate archive client for each merge. Source: archive-protocol 6.1.
"""

from collections.abc import Callable
from enum import Enum, auto

from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.errors import (
    ArchiveClosedError,
    ArchiveError,
    ArchiveTimeoutError,
)
from windtunnel.driver.archive.client.operations import listing
from windtunnel.driver.archive.client.operations import replay as replaying
from windtunnel.driver.archive.client.operations.replay import ReplayParams, session_id_of
from windtunnel.driver.archive.client.session_holder import SessionHolder
from windtunnel.driver.archive.client.turns import Turns, advance
from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.base.arith import I64_MAX
from windtunnel.driver.channel import uri, uri_param
from windtunnel.driver.client import Image, Subscription
from windtunnel.driver.client.image.fragment_handlers import FragmentHandler

PROGRESS_TIMEOUT_NS = 5_000_000_000
BACKOFF_NS_MIN, BACKOFF_NS_MAX = 8_000_000, 500_000_000
IDLE_POLL_NS = 100_000_000
WINDOW_LENGTH_MAX = 32 * 1024 * 1024
"""The maximum distance in bytes to the recorded position at which the live stream is joined. The
limit is a quarter of a term if that is less.
"""
TRANSPORTS_WHEN_BOTH = 2


class MergeState(Enum):
    """The states of a replay merge."""

    RESOLVE_REPLAY_PORT = auto()
    GET_RECORDING_POSITION = auto()
    REPLAY = auto()
    CATCHUP = auto()
    ATTEMPT_LIVE_JOIN = auto()
    MERGED = auto()
    FAILED = auto()
    CLOSED = auto()


class ReplayMerge:
    """A replay that merges with the live stream. One thread must call `poll` or `do_work`
    repeatedly.
    """

    def __init__(
        self,
        subscription: Subscription,
        archive: SessionHolder,
        *,
        replay_channel: str,
        replay_destination: str,
        live_destination: str,
        recording_id: int,
        start_position: int,
        progress_timeout_ns: int = PROGRESS_TIMEOUT_NS,
    ) -> None:
        """Start a merge. Raises ValueError if a channel is unsuitable for a merge."""
        _check(subscription.channel, replay_channel, replay_destination, live_destination)
        self.subscription, self._session = subscription, archive.session
        self._clock = archive.session.clock
        self._replay_channel = (
            uri.parse(replay_channel)
            .with_param(uri_param.LINGER, 0)
            .with_param(uri_param.EOS, False)
        )
        self._replay_destination, self._live_destination = replay_destination, live_destination
        self._recording_id, self._start_position = recording_id, start_position
        self._progress_timeout_ns = progress_timeout_ns
        self.image: Image | None = None
        """The image that both streams feed, or None until the replay arrives."""
        self.is_live_added = False
        self._replay_session_id = self._target = NULL_VALUE
        self._is_replay_active = False
        self._request: Turns[int] | None = None
        self._backoff_ns, self._next_request_ns = BACKOFF_NS_MIN, 0
        self._last_position = self._last_idle_poll_ns = 0
        self._progress_at_ns = self._clock.now_ns()
        self._adding = [subscription.async_add_destination(replay_destination, is_collected=True)]
        """The destinations to which the driver has not responded."""
        endpoint = uri.parse(replay_destination).get(uri_param.ENDPOINT) or ""
        if endpoint.endswith(":0"):
            self.state = MergeState.RESOLVE_REPLAY_PORT
        else:
            self._replay_channel = self._replay_channel.with_param(uri_param.ENDPOINT, endpoint)
            self.state = MergeState.GET_RECORDING_POSITION
        self._steps: dict[MergeState, Callable[[], bool]] = {
            MergeState.RESOLVE_REPLAY_PORT: self._resolve_replay_port,
            MergeState.GET_RECORDING_POSITION: self._get_recording_position,
            MergeState.REPLAY: self._replay,
            MergeState.CATCHUP: self._catch_up,
            MergeState.ATTEMPT_LIVE_JOIN: self._attempt_live_join,
        }

    @property
    def is_merged(self) -> bool:
        """Return whether the merge is complete and only the live stream is received."""
        return self.state is MergeState.MERGED

    @property
    def has_failed(self) -> bool:
        """Return whether the merge has failed."""
        return self.state is MergeState.FAILED

    def poll(self, handler: FragmentHandler, fragment_limit: int = 10) -> int:
        """Run one duty cycle and read from the image. Returns the number of fragments delivered."""
        self.do_work()
        return 0 if self.image is None else self.image.poll(handler, fragment_limit)

    def do_work(self) -> int:
        """Run one duty cycle of the merge. Returns the amount of work done.

        Raises ArchiveError and the driver's errors, such as RegistrationError if it rejects a
        destination. The state is FAILED after an error.
        """
        step = self._steps.get(self.state)
        if step is None:
            return 0
        try:
            self._check_destinations()
            self._check_errors()
            before = self.state
            work_count = int(step())
            if work_count or self.state is not before:
                self._progress_at_ns = self._clock.now_ns()
            elif self._clock.now_ns() > self._progress_at_ns + self._progress_timeout_ns:
                timeout_ms = self._progress_timeout_ns // 1_000_000
                raise ArchiveTimeoutError(
                    f"replay merge: no progress within {timeout_ms} ms in state "
                    f"{self.state.name}, position {self._last_position}, target {self._target}"
                )
        except Exception:
            self._cancel_request()
            self.state = MergeState.FAILED
            raise
        return work_count

    def _check_destinations(self) -> None:
        while self._adding and self.subscription.is_destination_added(self._adding[0]):
            del self._adding[0]

    def _check_errors(self) -> None:
        if not self._session.is_connected:
            raise ArchiveClosedError("replay merge: the archive is not connected")
        now_ns = self._clock.now_ns()
        if self._request is None and now_ns < self._last_idle_poll_ns + IDLE_POLL_NS:
            return
        self._last_idle_poll_ns = now_ns
        self._session.poll()
        error = self._session.take_unclaimed()
        if error is not None:
            raise error

    def _resolve_replay_port(self) -> bool:
        resolved = self.subscription.resolved_endpoint
        if resolved is None:
            return False
        own = self._replay_channel.get(uri_param.ENDPOINT)
        if own is not None and own.endswith(":0"):
            resolved = own[: -len("0")] + resolved.rpartition(":")[2]
        if own is None or own.endswith(":0"):
            self._replay_channel = self._replay_channel.with_param(uri_param.ENDPOINT, resolved)
        self.state = MergeState.GET_RECORDING_POSITION
        return True

    def _poll_request(self, start: Callable[[ControlSession], Turns[int]]) -> int | None:
        """Send the current request if it is due. Returns the response, or None until it arrives."""
        if self._request is None:
            now_ns = self._clock.now_ns()
            if now_ns < self._next_request_ns:
                return None
            self._backoff_ns = min(2 * self._backoff_ns, BACKOFF_NS_MAX)
            self._next_request_ns = now_ns + self._backoff_ns
            self._request = start(self._session)
        is_done, value = advance(self._request)
        if is_done:
            self._request = None
        return value

    def _cancel_request(self) -> None:
        if self._request is not None:
            self._request.close()
            self._request = None

    def _request_position(self, session: ControlSession) -> Turns[int]:
        return listing.max_recorded_position(session, self._recording_id)

    def _get_recording_position(self) -> bool:
        position = self._poll_request(self._request_position)
        if position is None or position == NULL_VALUE:
            return position is not None
        self._target = position
        self._next_request_ns, self.state = 0, MergeState.REPLAY
        return True

    def _request_replay(self, session: ControlSession) -> Turns[int]:
        params = ReplayParams(position=self._start_position, length=I64_MAX)
        channel, stream_id = str(self._replay_channel), self.subscription.stream_id
        return replaying.start_replay(session, self._recording_id, channel, stream_id, params)

    def _replay(self) -> bool:
        replay_session_id = self._poll_request(self._request_replay)
        if replay_session_id is None:
            return False
        self._replay_session_id, self._is_replay_active = replay_session_id, True
        self._backoff_ns, self._next_request_ns = BACKOFF_NS_MIN, 0
        self.state = MergeState.CATCHUP
        return True

    def _catch_up(self) -> bool:
        if self.image is None:
            session_id = session_id_of(self._replay_session_id)
            self.image = self.subscription.image_by_session_id(session_id)
            return self.image is not None
        moved = self._has_moved(self.image)
        if self.image.position >= self._target:
            self.state = MergeState.ATTEMPT_LIVE_JOIN
        return moved

    def _has_moved(self, image: Image) -> bool:
        if image.is_closed:
            raise ArchiveError(
                f"replay merge: the image was closed at position {image.position}, before the "
                f"target {self._target}"
            )
        before, self._last_position = self._last_position, image.position
        return self._last_position != before

    def _attempt_live_join(self) -> bool:
        assert self.image is not None
        moved = self._has_moved(self.image)
        target = self._poll_request(self._request_position)
        if target is None:
            return moved
        if target != NULL_VALUE:
            self._target = target
            behind = target - self.image.position
            transports = self.image.active_transport_count
            if not self.is_live_added and behind <= self._window_length(self.image):
                live = self._live_destination
                self._adding.append(
                    self.subscription.async_add_destination(live, is_collected=True)
                )
                self.is_live_added = True
            elif self.is_live_added and behind <= 0 and transports >= TRANSPORTS_WHEN_BOTH:
                self.subscription.async_remove_destination(self._replay_destination)
                self._stop_replay()
                self.state = MergeState.MERGED
                return True
        self.state = MergeState.CATCHUP
        return True

    @staticmethod
    def _window_length(image: Image) -> int:
        return min(image.term_length // 4, WINDOW_LENGTH_MAX)

    def _stop_replay(self) -> None:
        if self._is_replay_active:
            self._is_replay_active = False
            replaying.abandon_replay(self._session, self._replay_session_id)

    def close(self) -> None:
        """Abandon an unfinished merge. The subscription and its live destination are kept."""
        if self.state is MergeState.CLOSED:
            return
        self._cancel_request()
        for each in self._adding:
            self._session.aeron.abandon(each)
        if not self.is_merged and not self.subscription.is_closed:
            self.subscription.async_remove_destination(self._replay_destination)
        if self._session.is_connected:
            self._stop_replay()
        self.state = MergeState.CLOSED


def _check(subscription: str, replay: str, replay_destination: str, live: str) -> None:
    channels = {
        "subscription": subscription,
        "replay channel": replay,
        "replay destination": replay_destination,
        "live destination": live,
    }
    for name, text in channels.items():
        if uri.parse(text).is_ipc:
            raise ValueError(
                f"{name} {text}: expected a UDP channel, because IPC streams cannot be merged"
            )
    if uri.parse(subscription).get(uri_param.CONTROL_MODE) != "manual":
        raise ValueError(f"subscription channel {subscription}: expected control-mode=manual")
