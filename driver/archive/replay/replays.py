"""Start and stop replays.

    request --> ReplayPlan --> publication asked for --> ReplayRun --> Replayer --> OK, errors

A replay is known by its number in the upper half of an id and the session of its publication in the
lower; it counts against the limit from its request to its end. Whether there was a replay to stop
is not told. Source: archive-protocol 3.6 to 3.9.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from windtunnel.driver.archive.control import retained_channel
from windtunnel.driver.archive.control.archive_resources import ArchiveResources, base_of
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
from windtunnel.driver.archive.replay.replay_plan import make_plan
from windtunnel.driver.archive.replay.replay_run import (
    ReadOptions,
    ReplayPlan,
    ReplayRun,
    ReplayState,
)
from windtunnel.driver.archive.replay.replayer import Replayer
from windtunnel.driver.archive.storage.frame_place import term_id_at
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri, uri_param
from windtunnel.driver.client.errors import ClientError, RegistrationError
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication
from windtunnel.driver.command.command_type import ErrorCode as DriverErrorCode

_OTHER_MEDIUM = re.compile(r"aeron:(?!(udp|ipc)\b)\w+(\?|$)")


@dataclass(eq=False)
class Replay:
    """One that was asked for and has not ended."""

    session: ControlSession
    correlation_id: int
    plan: ReplayPlan
    channel: str
    stream_id: int
    publication_id: int
    run: ReplayRun | None = None
    replay_id: int = NULL_VALUE
    is_aborted: bool = False
    "Whether it was told to end; what goes wrong from then on, or just did, is nobody's failure."

    @property
    def recording_id(self) -> int:
        return self.plan.recording.recording_id

    @property
    def segment_base(self) -> int:
        """The base of the file that it reads at present."""
        position = self.plan.position if self.run is None else self.run.position
        return base_of(self.plan.recording, position)


class Replays:
    """What one archive replays, in its conductor's thread."""

    def __init__(
        self,
        facilities: ArchiveResources,
        replayer: Replayer,
        recordings: Recordings,
        deletions: Deletions,
        options: ReadOptions,
        tokens: ReplayTokens,
    ) -> None:
        self._facilities, self._replayer = facilities, replayer
        self._recordings, self._deletions = recordings, deletions
        self._options, self._tokens = options, tokens
        self._replays: list[Replay] = []
        self._next_number = 1

    def of(self, recording_id: int) -> list[Replay]:
        """The replays of one recording."""
        return [each for each in self._replays if each.recording_id == recording_id]

    # --- requests ------------------------------------------------------------------------------

    def start(
        self, session: ControlSession, request: ReplayRequest | BoundedReplayRequest, image: Image
    ) -> None:
        """Replay a recording; a channel that makes no sense is not answered, as with Aeron.

        To Aeron any word is a medium; that nobody serves it is found out later, and told.
        """
        facilities = self._facilities
        try:
            channel = uri.parse(request.replay_channel)
        except ConfigurationError as error:
            if _OTHER_MEDIUM.match(request.replay_channel):
                raise
            facilities.errors.warn(f"replay of recording {request.recording_id}: {error}")
            return
        limit = facilities.settings.max_concurrent_replays
        if len(self._replays) >= limit:
            raise RequestRejected(f"max concurrent replays reached {limit}", ErrorCode.MAX_REPLAYS)
        recording = facilities.recording(request.recording_id)
        active = self._recordings.active(request.recording_id)
        plan = make_plan(facilities, request, recording, active)
        self._require_undeleted(plan)
        is_response = channel.get(uri_param.CONTROL_MODE) == "response"
        has_token = is_response and request.replay_token != NULL_VALUE
        text = self._channel(channel, recording, plan, image.correlation_id if has_token else None)
        self._replays.append(
            Replay(
                session, request.correlation_id, plan, text, request.replay_stream_id,
                facilities.client.async_add_exclusive_publication(text, request.replay_stream_id),
            )
        )  # fmt: skip
        self._count()

    def _require_undeleted(self, plan: ReplayPlan) -> None:
        highest = self._deletions.highest_base(plan.recording.recording_id)
        stop = plan.recording.stop_position
        if highest is not None and highest > stop and plan.known_end > stop:
            raise RequestRejected(
                f"cannot start replay of recording {plan.recording.recording_id} due to an "
                "outstanding delete operation"
            )

    def _channel(
        self,
        channel: uri.ChannelUri,
        recording: RecordingDescriptor,
        plan: ReplayPlan,
        response_id: int | None,
    ) -> str:
        """Where a publication stands at the replay's position. Raises Refusal."""
        linger = channel.get(uri_param.LINGER)
        try:
            linger_ns = (
                self._facilities.settings.replay_linger_timeout_ns if linger is None
                else int(linger)
            )  # fmt: skip
        except ValueError:
            raise RequestRejected(
                f"failed to process replayChannel - linger={linger}: expected nanoseconds"
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
                eos=channel.get(uri_param.EOS),
                sparse=channel.get(uri_param.SPARSE),
                response_correlation_id=response_id,
            )
        )

    def issue_token(self, session: ControlSession, request: ReplayTokenRequest) -> None:
        """Let another publication ask for a replay."""
        now_ns = self._facilities.clock.now_ns()
        session.ok(
            request.correlation_id, self._tokens.issue(session, request.recording_id, now_ns)
        )

    def stop(self, session: ControlSession, request: StopReplayRequest) -> None:
        """End one replay, if there is one of that id."""
        for each in self._replays:
            if each.replay_id == request.replay_session_id and each.run is not None:
                self._end(each, each.run)
        session.ok(request.correlation_id)

    def stop_all(self, session: ControlSession, request: StopAllReplaysRequest) -> None:
        """End the replays of one recording, or of all."""
        wanted = request.recording_id
        self._abort(lambda each: wanted in (NULL_VALUE, each.recording_id))
        session.ok(request.correlation_id)

    def abort_of(self, recording_id: int) -> None:
        """End the replays of a recording."""
        self._abort(lambda each: each.recording_id == recording_id)

    def _abort(self, is_meant: Callable[[Replay], bool]) -> None:
        for each in tuple(self._replays):
            if not is_meant(each):
                continue
            if each.run is not None:
                self._end(each, each.run)
            else:
                self._facilities.client.abandon(each.publication_id)
                self._replays.remove(each)
        self._count()

    def _end(self, replay: Replay, run: ReplayRun) -> None:
        replay.is_aborted = True
        self._replayer.abort(run)

    # --- its duty cycle ------------------------------------------------------------------------

    def do_work(self, now_ns: int) -> int:
        """Begin with what has its publication, tell what has begun or ended."""
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
            return self._fail(replay, f"failed to create replay publication - {error}")
        if publication is None:
            return 0
        session_id = publication.session_id & 0xFFFFFFFF
        replay.replay_id = self._next_number << 32 | session_id
        self._next_number += 1
        replay.run = ReplayRun(replay.plan, publication, self._options, now_ns)
        self._replayer.add(replay.run)
        return 1

    def _publication_of(self, replay: Replay) -> ExclusivePublication | None:
        """Its publication, if the driver has made it. Raises ClientError."""
        client = self._facilities.client
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
        self._count()
        self._facilities.errors.warn(text)
        replay.session.error(replay.correlation_id, text)
        return 1

    def _on_change(self, run: ReplayRun, state: ReplayState) -> None:
        replay = next((each for each in self._replays if each.run is run), None)
        if replay is None:
            return
        if state == ReplayState.CONNECTING:
            replay.session.ok(replay.correlation_id, replay.replay_id)
            return
        self._replays.remove(replay)
        self._count()
        if run.failure:
            self._facilities.errors.warn(run.failure)
            if not replay.is_aborted:
                replay.session.error(replay.correlation_id, run.failure, run.failure_code)

    def _count(self) -> None:
        self._facilities.counters.replay_sessions.set(len(self._replays))
