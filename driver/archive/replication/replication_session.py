"""One replication of a recording, from connecting to the source archive until its end.

    CONNECT -> DESCRIPTOR -> [POSITION] -> EXTEND -> [TOKEN -> PROXY] -> REPLAY -> IMAGE -> COPY
                                                                                    | live
                              DONE <---------- MERGE <-- JOIN <---> CATCH_UP <------'

Responses and signals to the client have the replication id as their correlation id. An error is
sent once and ends the replication, but data that was already recorded is kept. After a merge the
recording continues with the live stream. Over IPC this archive copies between archives that use the
same driver. Aeron waits forever for an endpoint in this case. Source: archive-protocol 7.
"""

from collections.abc import Callable
from enum import Enum, auto

from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.control_session import ControlSession
from windtunnel.driver.archive.control.request_rejected import RequestRejected, code_of
from windtunnel.driver.archive.protocol.codes import NULL_VALUE, ErrorCode, RecordingSignal
from windtunnel.driver.archive.protocol.requests import (
    ListRecordingRequest,
    RecordingPositionRequest,
    ReplayRequest,
    ReplayTokenRequest,
    StopReplayRequest,
)
from windtunnel.driver.archive.protocol.responses import ControlResponse, RecordingDescriptor
from windtunnel.driver.archive.recording.recordings import Recordings
from windtunnel.driver.archive.replication import destination
from windtunnel.driver.archive.replication.pending_request import PendingRequest
from windtunnel.driver.archive.replication.replay_recording import ReplayRecording
from windtunnel.driver.archive.replication.replication_request import ReplicationRequest
from windtunnel.driver.archive.replication.request_publication import RequestPublication
from windtunnel.driver.archive.replication.source_archive import SourceArchive, SourceArchiveError
from windtunnel.driver.base.errors import DriverError

LIVE_WINDOW_MAX = 32 << 20
JOIN_ATTEMPTS = 3
TRANSPORTS_OF_MERGE = 2


class State(Enum):
    """The steps of a replication."""

    CONNECT = auto()
    DESCRIPTOR = auto()
    POSITION = auto()
    EXTEND = auto()
    TOKEN = auto()
    PROXY = auto()
    REPLAY = auto()
    IMAGE = auto()
    COPY = auto()
    CATCH_UP = auto()
    JOIN = auto()
    DONE = auto()


class ReplicationSession(PendingRequest):
    """Runs one replication of a recording. Only the conductor's thread uses it."""

    def __init__(
        self,
        replication_id: int,
        session: ControlSession,
        request: ReplicationRequest,
        source: SourceArchive,
        resources: ArchiveResources,
        recordings: Recordings,
        now_ns: int,
    ) -> None:
        super().__init__(source, resources.settings.message_timeout_ns, now_ns)
        self.replication_id, self.session = replication_id, session
        self._request, self._channels = request, request.channels
        self._resources, self._recordings = resources, recordings
        self._destination_id = request.destination_id
        self.state = State.CONNECT
        self._source: RecordingDescriptor | None = None
        self._position = 0
        """The position in the recording from which data is copied."""
        self._source_position = NULL_VALUE
        self._replay_recording: ReplayRecording | None = None
        self._token = self._replay_id = NULL_VALUE
        self._proxy: RequestPublication | None = None
        self._is_live_added = False
        self._attempts = JOIN_ATTEMPTS
        self._turns: dict[State, Callable[[], int]] = {
            State.CONNECT: self._connect, State.DESCRIPTOR: self._describe,
            State.POSITION: self._request_position, State.EXTEND: self._extend,
            State.TOKEN: self._request_token, State.PROXY: self._open_proxy,
            State.REPLAY: self._request_replay, State.IMAGE: self._await_image,
            State.COPY: self._copy, State.CATCH_UP: self._catch_up, State.JOIN: self._join,
        }  # fmt: skip

    @property
    def is_done(self) -> bool:
        return self.state == State.DONE

    def do_work(self, now_ns: int) -> int:
        """Run one duty cycle of the replication. Returns the amount of work done."""
        self._now_ns = now_ns
        try:
            recording = self._replay_recording
            is_over = recording is not None and recording.is_closed and not recording.has_failed
            if is_over and self.state != State.COPY:
                self._go_to(State.DONE)
            if self.state not in (State.CONNECT, State.DONE):
                self._receive()
            return 0 if self.is_done else self._turns[self.state]()
        except DriverError as error:
            self._fail_with(error)
            return 1

    def _fail_with(self, error: DriverError) -> None:
        code = code_of(error)
        if self.state == State.CONNECT:
            code = ErrorCode.REPLICATION_CONNECTION_FAILURE
        elif isinstance(error, SourceArchiveError):
            self._resources.errors.warn(f"replication {self.replication_id}: {error}")
        self.fail(str(error), code)

    def fail(self, text: str, code: ErrorCode = ErrorCode.GENERIC) -> None:
        """End the replication and send an error to its client."""
        self._go_to(State.DONE)
        self.session.responses.error(self.replication_id, text, code)

    def end(self) -> None:
        """Stop the replication."""
        self._go_to(State.DONE)

    def close(self) -> None:
        """Release all resources and signal the end of the replication."""
        if self._replay_recording is not None:
            self._replay_recording.stop()
        if self._replay_id != NULL_VALUE and self._archive.is_open:
            try:
                self._archive.send_request(StopReplayRequest, replay_session_id=self._replay_id)
            except DriverError as error:
                # Without a driver the replay has ended, too. Continue to release resources.
                self._resources.errors.warn(f"cannot stop replay {self._replay_id}: {error}")
        if self._proxy is not None:
            self._proxy.close()
        self._archive.close()
        self._signal(RecordingSignal.REPLICATE_END)

    def _go_to(self, state: State) -> None:
        self.state = state
        self._reset()

    def _signal(
        self,
        signal: RecordingSignal,
        position: int = NULL_VALUE,
        subscription_id: int = NULL_VALUE,
    ) -> None:
        self.session.responses.signal(
            self.replication_id, signal, self._destination_id, subscription_id, position
        )

    # --- steps ---------------------------------------------------------------------------------

    def _connect(self) -> int:
        work_count = self._archive.connect()
        if self._archive.is_open:
            self._go_to(State.DESCRIPTOR)
            return 1
        self._check_timeout(
            f"cannot connect to the source archive, state {self._archive.state_name}"
        )
        return work_count

    def _describe(self) -> int:
        response = self._request_response(
            ListRecordingRequest, recording_id=self._request.source_id
        )
        if response is None:
            return 0
        if not isinstance(response, RecordingDescriptor):
            raise RequestRejected(
                f"unknown source recording id {self._request.source_id}",
                ErrorCode.UNKNOWN_RECORDING,
            )
        self._source = response
        least = self._request.file_io_max_length
        if least != NULL_VALUE and least < response.mtu_length:
            raise RequestRejected(
                f"fileIoMaxLength={least}: expected at least mtuLength={response.mtu_length}"
            )
        target = destination.prepare_destination(self._resources, self._destination_id, response)
        self._destination_id, self._position = target.recording_id, target.position
        if target.is_new:
            self._signal(RecordingSignal.REPLICATE, target.position)
        stop = response.stop_position
        if self._channels.live_destination and stop != NULL_VALUE:
            raise RequestRejected("cannot live merge without an active source recording")
        own_stop = self._resources.recording(self._destination_id).stop_position
        if stop != NULL_VALUE and stop in (response.start_position, own_stop):
            self._signal(RecordingSignal.SYNC, stop)
            self._go_to(State.DONE)
        else:
            is_live = bool(self._channels.live_destination)
            self._go_to(State.POSITION if is_live else State.EXTEND)
        return 1

    def _request_position(self) -> int:
        if not self._is_position_known():
            return 0
        self._go_to(State.EXTEND)
        return 1

    def _is_position_known(self) -> bool:
        """Request the source recording's recorded position. Returns whether the response has
        arrived.
        """
        response = self._request_response(
            RecordingPositionRequest, recording_id=self._request.source_id
        )
        if not isinstance(response, ControlResponse):
            return False
        self._source_position = response.relevant_id
        if self._source_position == NULL_VALUE:
            raise RequestRejected("cannot live merge without an active source recording")
        return True

    @property
    def _replay_session_id(self) -> int:
        assert self._source is not None
        is_chosen = self._request.session_id != NULL_VALUE and not self._channels.live_destination
        return self._request.session_id if is_chosen else self._source.session_id

    @property
    def _recording(self) -> ReplayRecording:
        assert self._replay_recording is not None
        return self._replay_recording

    def _extend(self) -> int:
        """Subscribe to the replay, so that the frames of the replay extend the destination
        recording.
        """
        if self._replay_recording is None:
            assert self._source is not None
            self._replay_recording = ReplayRecording(
                self._resources, self._recordings, self.session, self.replication_id,
                self._destination_id, self._source.stream_id,
                self._channels.to_record(self._replay_session_id, self.replication_id),
                is_live=bool(self._channels.live_destination),
            )  # fmt: skip
        if not self._replay_recording.is_subscribed:
            return 0
        if self._channels.has_destinations:
            subscription = self._replay_recording.subscription
            subscription.async_add_destination(self._channels.replay_destination)
        self._go_to(State.TOKEN if self._channels.is_response else State.REPLAY)
        return 1

    def _request_token(self) -> int:
        response = self._request_response(ReplayTokenRequest, recording_id=self._request.source_id)
        if not isinstance(response, ControlResponse):
            return 0
        self._token = response.relevant_id
        self._go_to(State.PROXY)
        return 1

    def _open_proxy(self) -> int:
        """Add a request publication whose channel identifies the replay subscription."""
        if self._proxy is None:
            self._proxy = RequestPublication(
                self._resources.client, self._archive.request_channel,
                self._archive.request_stream_id, self._recording.subscription.registration_id,
            )  # fmt: skip
        if not self._proxy.poll():
            return self._check_timeout("no publication for the replay request")
        self._go_to(State.REPLAY)
        return 1

    def _request_replay(self) -> int:
        assert self._source is not None
        subscription = self._recording.subscription
        endpoint = subscription.resolved_endpoint
        if self._correlation_id is None and self._channels.channel.is_udp and endpoint is None:
            return self._check_timeout("the replication channel was not resolved")
        via = None if self._proxy is None else self._proxy.publication
        response = self._request_response(
            ReplayRequest, via, recording_id=self._request.source_id,
            position=self._position,
            length=self._request.length_from(self._position),
            replay_stream_id=self._source.stream_id,
            file_io_max_length=self._request.file_io_max_length, replay_token=self._token,
            replay_channel=str(
                self._channels.to_replay(
                    self._replay_session_id, subscription.registration_id, endpoint
                )
            ),
        )  # fmt: skip
        if not isinstance(response, ControlResponse):
            return 0
        self._replay_id = response.relevant_id
        self._go_to(State.IMAGE)
        return 1

    def _await_image(self) -> int:
        session_id = (self._replay_id + (1 << 31)) % (1 << 32) - (1 << 31)
        if not self._recording.has_begun:
            return self._check_timeout(f"no recording of session {session_id}")
        if not self._recording.find_image(session_id):
            return self._check_timeout(f"no image of session {session_id}")
        is_live = bool(self._channels.live_destination)
        self._go_to(State.CATCH_UP if is_live else State.COPY)
        return 1

    def _copy(self) -> int:
        assert self._source is not None
        recording, image = self._recording, self._recording.image
        is_over = image.is_closed or image.is_end_of_stream or recording.is_closed
        reached = recording.position
        source_stop, end = self._source.stop_position, self._request.stop_position
        is_synced = source_stop != NULL_VALUE and reached >= source_stop
        if not (is_synced or is_over or (end != NULL_VALUE and reached >= end)):
            return 0
        if is_synced:
            self._signal(RecordingSignal.SYNC, reached, recording.subscription.registration_id)
        self._replay_id = NULL_VALUE
        self._go_to(State.DONE)
        return 1

    def _catch_up(self) -> int:
        if self._recording.position >= self._source_position:
            self._go_to(State.JOIN)
            return 1
        self._require_image()
        return 0

    def _require_image(self) -> None:
        if self._recording.image.is_closed:
            raise SourceArchiveError("the image of the replay was closed prematurely")

    def _join(self) -> int:
        """Add the live destination. After the live stream has caught up, remove the replay
        destination.
        """
        self._require_image()
        if self._is_overdue and self._attempts > 1:
            self._attempts -= 1
            self._reset()
        if not self._is_position_known():
            return 0
        self._attempts = JOIN_ATTEMPTS
        image, subscription = self._recording.image, self._recording.subscription
        gap = self._source_position - self._recording.position
        window = min(image.term_length // 4, LIVE_WINDOW_MAX)
        if not self._is_live_added and gap <= window:
            subscription.async_add_destination(self._channels.live_destination)
            self._is_live_added = True
        elif self._is_live_added and gap <= 0 and (
            image.active_transport_count >= TRANSPORTS_OF_MERGE
        ):  # fmt: skip
            subscription.async_remove_destination(self._channels.replay_destination)
            self._replay_recording = None
            self._signal(RecordingSignal.MERGE, image.position)
            self._go_to(State.DONE)
            return 1
        self._go_to(State.JOIN)
        return 1
