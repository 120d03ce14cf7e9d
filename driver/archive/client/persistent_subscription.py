"""Reads a stream from any position, first from its recording and then from the live stream.

      set-up --> REPLAY --> ATTEMPT_SWITCH --> LIVE
        ^           |  replay or live closed |   | live closed
        `-----------+------------------------+---'

Current data is read from the live stream, and earlier or missed data from the recording. Replay and
live stream are two images. When the replay has nearly caught up, both are read, but messages of the
live image are not delivered until both images are at the same position. Every message is delivered
once and in order. The connection and the replay are set up again as often as necessary. An error
that cannot be transient, such as an unknown recording or a position outside the recording, ends the
subscription.

The context of the archive client must not be shared with another client.
Source: archive-protocol 6.2.
"""

from collections.abc import Callable
from dataclasses import dataclass

from windtunnel.driver.archive.client.context import ArchiveContext
from windtunnel.driver.archive.client.errors import (
    ArchiveClosedError,
    ArchiveError,
    ArchiveTimeoutError,
)
from windtunnel.driver.archive.client.persistent_counters import PersistentCounters
from windtunnel.driver.archive.client.persistent_link import ArchiveLink
from windtunnel.driver.archive.client.persistent_live import LiveStream
from windtunnel.driver.archive.client.persistent_replay import ReplayStream
from windtunnel.driver.archive.client.persistent_setup import (
    FROM_LIVE,
    FROM_START,
    FailureReason,
    PersistentParams,
    PersistentSetup,
    PersistentState,
    failure_reason,
    require_one_medium,
    require_recording,
)
from windtunnel.driver.archive.client.turns import Turns, advance
from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.base.clock import Clock, SystemClock
from windtunnel.driver.client import (
    Action,
    Aeron,
    Header,
    Image,
    ImageControlledFragmentAssembler,
    RegistrationError,
)
from windtunnel.driver.client.image.fragment_handlers import ControlledHandler, FragmentHandler
from windtunnel.driver.command.command_type import ErrorCode as DriverErrorCode

_WITHOUT_ARCHIVE = (
    PersistentState.AWAIT_ARCHIVE_CONNECTION,
    PersistentState.ATTEMPT_SWITCH,
    PersistentState.LIVE,
)
"""The states in which a persistent subscription needs no connection to the archive."""


def _is_transient(error: ArchiveError | RegistrationError) -> bool:
    """Return whether an error may be transient, so that a retry may succeed."""
    if isinstance(error, RegistrationError):
        return error.code == DriverErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE
    return isinstance(error, ArchiveTimeoutError | ArchiveClosedError)


@dataclass(frozen=True, kw_only=True)
class PersistentHandlers:
    """Callbacks of a persistent subscription. Each callback is optional."""

    on_live_joined: Callable[[], object] | None = None
    on_live_left: Callable[[], object] | None = None
    on_error: Callable[[Exception], object] | None = None
    """Function that is called with fatal errors, which are also stored in `failure`, and with
    errors that cause a retry.
    """


class PersistentSubscription:
    """Reads a stream first from its recording and then live. One thread must call `poll`
    repeatedly.
    """

    def __init__(
        self,
        aeron: Aeron,
        context: ArchiveContext,
        params: PersistentParams,
        handlers: PersistentHandlers | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Create the subscription. Raises ConfigurationError if a parameter is invalid, or
        RegistrationError if the driver rejects a counter.
        """
        context.conclude()
        self._aeron, self._params = aeron, params.conclude()
        require_one_medium(params.replay_channel, context.control_request_channel)
        self._handlers, self._clock = handlers or PersistentHandlers(), clock or SystemClock()
        self._counters = PersistentCounters(aeron, params)
        self.state = PersistentState.AWAIT_ARCHIVE_CONNECTION
        self.position = params.start_position
        """The position up to which messages were delivered, initially the start position."""
        self.failure: Exception | None = None
        """The error that ended the subscription, or None."""
        self._setup = PersistentSetup(params, self._enter)
        self._archive = ArchiveLink(aeron, context, self._clock, self._report_error)
        self._list_request: Turns[RecordingDescriptor | None] | None = None
        self._recording: RecordingDescriptor | None = None
        self._replay = ReplayStream(self._setup, self._clock, context.message_timeout_ns)
        self._replay_image: Image | None = None
        self._live = LiveStream(
            aeron, params, self._clock, context.message_timeout_ns, self._report_error
        )
        self._live_image: Image | None = None
        self._last_live_position = NULL_VALUE
        self._assembler = ImageControlledFragmentAssembler(self._deliver)
        self._handler: ControlledHandler = lambda payload, header: None
        self.is_closed = False

    @property
    def is_live(self) -> bool:
        """Return whether only the live stream is being read."""
        return self.state is PersistentState.LIVE

    @property
    def is_replaying(self) -> bool:
        """Return whether the recording is being read."""
        return self.state in (PersistentState.REPLAY, PersistentState.ATTEMPT_SWITCH)

    @property
    def has_failed(self) -> bool:
        """Return whether a fatal error has ended the subscription. `failure` contains the error."""
        return self.state is PersistentState.FAILED

    @property
    def reason(self) -> FailureReason | None:
        """The reason for the failure, or None if the subscription has not failed."""
        return None if self.failure is None else failure_reason(self.failure)

    def poll(self, handler: FragmentHandler, fragment_limit: int = 10) -> int:
        """Run one duty cycle and deliver complete messages. Returns the amount of work done."""

        def controlled(payload: memoryview, header: Header) -> Action:
            handler(payload, header)
            return Action.CONTINUE

        return self.controlled_poll(controlled, fragment_limit)

    def controlled_poll(self, handler: ControlledHandler, fragment_limit: int = 10) -> int:
        """Poll like `poll`, but with a handler that returns an Action for each message."""
        if self.is_closed:
            return 0
        if self._aeron.context.use_conductor_agent_invoker:
            self._aeron.invoke()
        if self.has_failed:
            return 0
        self._handler = handler
        try:
            return self._work(fragment_limit)
        except (ArchiveError, RegistrationError) as error:
            if _is_transient(error):
                self._report_error(error)
                self._return_to_recording()
            else:
                self._fail(error)
        return 1

    def _deliver(self, payload: memoryview, header: Header) -> Action | None:
        return self._handler(payload, header)

    def _enter(self, state: PersistentState) -> None:
        self.state = state
        self._counters.state.set(int(state))

    def _report_error(self, error: Exception) -> None:
        if self._handlers.on_error is not None:
            self._handlers.on_error(error)

    def _fail(self, error: Exception) -> None:
        self.failure = error
        self._release()
        self._enter(PersistentState.FAILED)
        self._report_error(error)

    def _work(self, limit: int) -> int:
        self._archive.poll()
        if self.state not in _WITHOUT_ARCHIVE and not self._archive.is_connected:
            raise ArchiveClosedError("persistent subscription: the archive is not connected")
        match self.state:
            case PersistentState.REPLAY:
                return self._read_replay(limit)
            case PersistentState.ATTEMPT_SWITCH:
                return self._attempt_switch(limit)
            case PersistentState.LIVE:
                return self._read_live(limit)
            case PersistentState.ADD_LIVE_SUBSCRIPTION:
                self._live.add()
                self._enter(PersistentState.AWAIT_LIVE)
                return 1
            case PersistentState.AWAIT_LIVE:
                return self._await_live()
            case PersistentState.AWAIT_ARCHIVE_CONNECTION:
                return self._connect()
        return self._set_up()

    def _connect(self) -> int:
        if not self._archive.connect():
            return 0
        self._enter(PersistentState.SEND_LIST_RECORDING_REQUEST)
        return 1

    def _set_up(self) -> int:
        """Take one step towards listing the recording or starting a replay."""
        if self._replay.is_requested:
            is_started = self._replay.try_start()
            if is_started:
                self._enter(PersistentState.REPLAY)
            return int(is_started)
        if self._list_request is None:
            self._list_request = self._setup.describe(self._archive.session)
        is_done, found = advance(self._list_request)
        if not is_done:
            return 0
        self._list_request = None
        reached = max(self._last_live_position, self.position)
        self._begin_at(require_recording(self._params, found, self.position, reached))
        return 1

    def _begin_at(self, found: RecordingDescriptor) -> None:
        self._recording = found
        self._replay.forget_recorded_position()
        if self.position == FROM_START:
            self.position = found.start_position
        if self.position in (FROM_LIVE, found.stop_position):
            self._enter(PersistentState.ADD_LIVE_SUBSCRIPTION)
            return
        self._replay.request(self._archive.session, self.position)
        self._enter(PersistentState.SEND_REPLAY_REQUEST)

    def _read_replay(self, limit: int) -> int:
        if self._replay_image is None:
            self._replay_image = self._replay.image()
            return int(self._replay_image is not None)
        image = self._replay_image
        if image.is_closed:
            self._return_to_recording()
            return 1
        self._live_image = self._live.image()
        if self._live_image is not None:
            self._counters.difference.set(self._live_image.position - image.position)
            self._enter(PersistentState.ATTEMPT_SWITCH)
            return 1
        count = image.controlled_poll(self._assembler, limit)
        self.position = image.position
        if not self._live.is_added and self._is_caught_up():
            self._live.add()
        return count

    def _is_caught_up(self) -> bool:
        assert self._recording is not None
        return self._replay.is_caught_up(self._archive.session, self._recording, self.position)

    def _attempt_switch(self, limit: int) -> int:
        replay, live = self._replay_image, self._live_image
        assert replay is not None
        assert live is not None
        if replay.position != live.position:
            if replay.is_closed:
                self.position = replay.position
                self._last_live_position = max(self._last_live_position, live.position)
                self._return_to_recording()
                return 1
            if live.is_closed:
                self._close_live()
                self._replay.forget_recorded_position()
                self._enter(PersistentState.REPLAY)
                return 1
            count = live.controlled_poll(self._skip_delivered, limit)
            if replay.position != live.position:
                count += replay.controlled_poll(self._assembler, limit)
                self.position = replay.position
                return count
        self._close_replay()
        self._join_live(live)
        return 1

    def _skip_delivered(self, payload: memoryview, header: Header) -> Action:
        """Skip a live message that the replay has already delivered. Returns ABORT for any other
        message.
        """
        assert self._replay_image is not None
        if header.position <= self._replay_image.position:
            return Action.CONTINUE
        return Action.ABORT

    def _join_live(self, image: Image) -> None:
        self._live_image, self.position = image, image.position
        self._counters.difference.set(0)
        self._counters.joined.increment()
        self._enter(PersistentState.LIVE)
        if self._handlers.on_live_joined is not None:
            self._handlers.on_live_joined()

    def _read_live(self, limit: int) -> int:
        image = self._live_image
        assert image is not None
        count = image.controlled_poll(self._assembler, limit)
        self.position = image.position
        if count == 0 and image.is_closed:
            self._last_live_position = max(self._last_live_position, image.position)
            self._return_to_recording()
            self._counters.left.increment()
            if self._handlers.on_live_left is not None:
                self._handlers.on_live_left()
            return 1
        return count

    def _await_live(self) -> int:
        image = self._live.image()
        if image is None:
            if not self._live.is_added:
                self._enter(PersistentState.ADD_LIVE_SUBSCRIPTION)
            return 0
        self._last_live_position = max(self._last_live_position, image.position)
        if 0 <= self.position < image.position:
            self._return_to_recording()
        elif self.position > image.position:
            raise ArchiveError(
                f"live stream: expected position {self.position} or later, found {image.position}"
            )
        else:
            self._join_live(image)
        return 1

    def _return_to_recording(self) -> None:
        """Switch back to reading from the recording. Opens a new archive session if necessary."""
        self._release_streams()
        is_connected = self._archive.is_connected
        if not is_connected:
            self._archive.close()
        self._enter(
            PersistentState.SEND_LIST_RECORDING_REQUEST
            if is_connected
            else PersistentState.AWAIT_ARCHIVE_CONNECTION
        )

    def _close_replay(self) -> None:
        if self._list_request is not None:
            self._list_request.close()
        self._replay.close()
        self._list_request = self._replay_image = None

    def _close_live(self) -> None:
        self._live.close()
        self._live_image = None
        self._counters.clear_difference()

    def _release_streams(self) -> None:
        self._close_replay()
        self._close_live()

    def _release(self) -> None:
        if not self._aeron.is_closed:
            self._release_streams()
        self._archive.close()

    def close(self) -> None:
        """Stop reading and release all resources. Repeated calls have no effect."""
        if self.is_closed:
            return
        self.is_closed = True
        self._release()
        self._counters.close()
