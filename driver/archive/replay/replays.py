"""Starts and stops replays at the request of clients.

    request --> ReplayPlan --> add publication --> ReplayRun --> Replayer --> OK, errors

A replay id has a number in its upper half and the publication's session id in its lower half. A
replay counts towards the limit on concurrent replays from its request until its end. The response
to a stop request does not show whether the replay existed. Source: archive-protocol 3.6 to 3.9.
"""

import re
from dataclasses import dataclass

from windtunnel.driver.archive.control import retained_channel
from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.control_session import ControlSession
from windtunnel.driver.archive.control.replay_tokens import ReplayTokens
from windtunnel.driver.archive.control.request_rejected import RequestRejected
from windtunnel.driver.archive.protocol.codes import NULL_VALUE, ErrorCode
from windtunnel.driver.archive.protocol.requests import (
    BoundedReplayRequest,
    ReplayRequest,
    ReplayTokenRequest,
    StopAllReplaysRequest,
    StopReplayRequest,
)
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.recording.recordings import Recordings
from windtunnel.driver.archive.recording.segment_deletions import Deletions
from windtunnel.driver.archive.replay.replay_plan import (
    limit_of_recording,
    limit_of_request,
    make_plan,
)
from windtunnel.driver.archive.replay.replay_run import (
    ReadOptions,
    ReplayPlan,
    ReplayRun,
    ReplayState,
)
from windtunnel.driver.archive.replay.replayer import Replayer
from windtunnel.driver.archive.storage.frame_position import term_id_at
from windtunnel.driver.archive.storage.segment_file import base_of
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri, uri_param
from windtunnel.driver.client.errors import ClientError, RegistrationError
from windtunnel.driver.client.image.header import SourceImage
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication
from windtunnel.driver.command.command_type import ErrorCode as DriverErrorCode

_PARSED_BY_AERON = re.compile(r"aeron:(udp$|(?!(udp|ipc)\b)\w+(\?|$))")


@dataclass(eq=False)
class Replay:
    """A replay that was requested and has not ended."""

    session: ControlSession
    correlation_id: int
    plan: ReplayPlan
    channel: str
    stream_id: int
    publication_id: int
    run: ReplayRun | None = None
    replay_id: int = NULL_VALUE
    is_aborted: bool = False
    """Whether the replay was aborted. Later errors are not reported to the client."""

    @property
    def recording_id(self) -> int:
        return self.plan.recording.recording_id

    @property
    def segment_base(self) -> int:
        """The base position of the file that the replay is reading."""
        position = self.plan.position if self.run is None else self.run.position
        return base_of(self.plan.recording, position)


class Replays:
    """All replays of one archive. Only the conductor's thread uses them."""

    def __init__(
        self,
        resources: ArchiveResources,
        replayer: Replayer,
        recordings: Recordings,
        deletions: Deletions,
        options: ReadOptions,
        tokens: ReplayTokens,
    ) -> None:
        self._resources, self._replayer = resources, replayer
        self._recordings, self._deletions = recordings, deletions
        self._options, self._tokens = options, tokens
        self._replays: list[Replay] = []
        self._next_number = 1

    def of(self, recording_id: int) -> list[Replay]:
        """Return all replays of one recording."""
        return [each for each in self._replays if each.recording_id == recording_id]

    # --- requests ------------------------------------------------------------------------------

    def start(
        self,
        session: ControlSession,
        request: ReplayRequest | BoundedReplayRequest,
        image: SourceImage,
    ) -> None:
        """Start a replay. As in Aeron, there is no response if the channel cannot be parsed.

        An unknown medium and UDP without parameters are exceptions: Aeron parses them and later
        sends an error.
        """
        resources = self._resources
        try:
            channel = uri.parse(request.replay_channel)
        except ConfigurationError as error:
            if _PARSED_BY_AERON.match(request.replay_channel):
                raise
            resources.errors.warn(f"replay of recording {request.recording_id}: {error}")
            return
        limit = limit_of_request(resources, request)
        maximum = resources.settings.max_concurrent_replays
        if len(self._replays) >= maximum:
            raise RequestRejected(
                f"the limit of {maximum} concurrent replays has been reached",
                ErrorCode.MAX_REPLAYS,
            )
        recording = resources.recording(request.recording_id)
        limit = limit or limit_of_recording(self._recordings.active(request.recording_id))
        plan = make_plan(resources, request, recording, limit)
        self._require_undeleted(plan)
        is_response = channel.get(uri_param.CONTROL_MODE) == "response"
        has_token = is_response and request.replay_token != NULL_VALUE
        text = self._channel(channel, recording, plan, image.correlation_id if has_token else None)
        self._replays.append(
            Replay(
                session, request.correlation_id, plan, text, request.replay_stream_id,
                resources.client.async_add_exclusive_publication(text, request.replay_stream_id),
            )
        )  # fmt: skip
        self._update_counter()

    def _require_undeleted(self, plan: ReplayPlan) -> None:
        """Raise RequestRejected if a file that the replay would read is being deleted."""
        highest = self._deletions.highest_base(plan.recording.recording_id)
        stop = plan.recording.stop_position
        if highest is not None and highest > stop and plan.known_end > stop:
            raise RequestRejected(
                f"cannot replay recording {plan.recording.recording_id}: some of its segment files "
                "are being deleted"
            )

    def _channel(
        self,
        channel: uri.ChannelUri,
        recording: RecordingDescriptor,
        plan: ReplayPlan,
        response_id: int | None,
    ) -> str:
        """Return the channel of a publication for this replay. Raises RequestRejected if the
        requested channel is invalid.
        """
        linger = channel.get(uri_param.LINGER)
        try:
            linger_ns = (
                self._resources.settings.replay_linger_timeout_ns if linger is None
                else int(linger)
            )  # fmt: skip
        except ValueError:
            raise RequestRejected(
                f"invalid replay channel: linger={linger}: expected a duration in nanoseconds"
            ) from None
        return str(
            retained_channel.retained(
                channel,
                mtu=recording.mtu_length,
                term_length=recording.term_buffer_length,
                init_term_id=recording.initial_term_id,
                term_id=term_id_at(recording, plan.position),
                term_offset=plan.position % recording.term_buffer_length,
                linger=linger_ns,
                eos=retained_channel.boolean(channel, uri_param.EOS),
                sparse=retained_channel.boolean(channel, uri_param.SPARSE),
                response_correlation_id=response_id,
            )
        )

    def issue_token(self, session: ControlSession, request: ReplayTokenRequest) -> None:
        """Issue a token for a replay request on an additional request publication."""
        now_ns = self._resources.clock.now_ns()
        session.responses.ok(
            request.correlation_id, self._tokens.issue(session, request.recording_id, now_ns)
        )

    def stop(self, session: ControlSession, request: StopReplayRequest) -> None:
        """Stop the replay with the requested id, if it exists."""
        for each in self._replays:
            if each.replay_id == request.replay_session_id and each.run is not None:
                self._end(each, each.run)
        session.responses.ok(request.correlation_id)

    def stop_all(self, session: ControlSession, request: StopAllReplaysRequest) -> None:
        """Stop all replays of one recording, or all replays of the archive. As in Aeron, a replay
        begins nevertheless if its publication has not been added yet.
        """
        recording_id = request.recording_id
        for each in self._replays:
            if recording_id in (NULL_VALUE, each.recording_id) and each.run is not None:
                self._end(each, each.run)
        session.responses.ok(request.correlation_id)

    def abort_of(self, recording_id: int) -> None:
        """Abort all replays of a recording that is being truncated."""
        for each in self.of(recording_id):
            if each.run is not None:
                self._end(each, each.run)
            else:
                self._resources.client.abandon(each.publication_id)
                self._fail(each, f"recording {recording_id} was truncated before its replay began")

    def _end(self, replay: Replay, run: ReplayRun) -> None:
        replay.is_aborted = True
        self._replayer.abort(run)

    # --- duty cycle ----------------------------------------------------------------------------

    def do_work(self, now_ns: int) -> int:
        """Start replays whose publication is ready, and respond to the clients whose replays have
        begun or ended.
        """
        work_count = 0
        for replay in tuple(self._replays):
            if replay.run is None:
                work_count += self._await_publication(replay, now_ns)
        while (change := self._replayer.take_change()) is not None:
            self._on_change(*change)
            work_count += 1
        return work_count

    def _await_publication(self, replay: Replay, now_ns: int) -> int:
        try:
            publication = self._publication_of(replay)
        except ClientError as error:
            return self._fail(replay, f"cannot add the replay publication: {error}")
        if publication is None:
            return 0
        session_id = publication.session_id & 0xFFFFFFFF
        replay.replay_id = self._next_number << 32 | session_id
        self._next_number += 1
        replay.run = ReplayRun(replay.plan, publication, self._options, now_ns)
        self._replayer.add(replay.run)
        return 1

    def _publication_of(self, replay: Replay) -> ExclusivePublication | None:
        """Return the publication of a replay, or None if the driver has not added it yet.

        Raises ClientError.
        """
        client = self._resources.client
        try:
            return client.get_exclusive_publication(replay.publication_id)
        except RegistrationError as error:
            if error.code != DriverErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE:
                raise
        replay.publication_id = client.async_add_exclusive_publication(
            replay.channel, replay.stream_id
        )
        return None

    def _fail(self, replay: Replay, text: str) -> int:
        self._replays.remove(replay)
        self._update_counter()
        self._resources.errors.warn(text)
        replay.session.responses.error(replay.correlation_id, text)
        return 1

    def _on_change(self, run: ReplayRun, state: ReplayState) -> None:
        replay = next((each for each in self._replays if each.run is run), None)
        if replay is None:
            return
        if state == ReplayState.CONNECTING:
            replay.session.responses.ok(replay.correlation_id, replay.replay_id)
            return
        self._replays.remove(replay)
        self._update_counter()
        if run.failure:
            self._resources.errors.warn(run.failure)
            if not replay.is_aborted:
                replay.session.responses.error(replay.correlation_id, run.failure, run.failure_code)

    def _update_counter(self) -> None:
        self._resources.counters.replay_sessions.set(len(self._replays))
