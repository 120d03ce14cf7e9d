"""A client of an archive: connect, ask, close; each call waits for its answer.

    with AeronArchive.connect(aeron, from_environment()) as archive:
        archive.start_recording("aeron:udp?endpoint=localhost:20121", 1001)
        archive.list_recordings(0, 100, print)
        subscription = archive.replay(0, "aeron:ipc", 1002)

What can be asked is in `operations`, of which each function is a method here with the same
arguments.
"""

from collections.abc import Callable
from functools import update_wrapper
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from windtunnel.driver.archive.client.connecting import Connecting
from windtunnel.driver.archive.client.context import ArchiveContext
from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.operations import listing, recording, replication, segments
from windtunnel.driver.archive.client.operations import replay as replaying
from windtunnel.driver.archive.client.session_holder import SessionHolder
from windtunnel.driver.archive.client.turns import Turns, finished, until
from windtunnel.driver.base import system
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.client import Aeron

_P = ParamSpec("_P")
_RESULT = TypeVar("_RESULT")

PAUSE_NS = 200_000
"""Between two looks at a quiet response channel."""


def run(aeron: Aeron, turns: Turns[_RESULT]) -> _RESULT:
    """Take turns until the operation is done, sleeping between them."""
    while True:
        is_done, value = finished(turns)
        if is_done:
            return value  # type: ignore[return-value]  # an operation's own result may be None
        if aeron.context.use_conductor_agent_invoker:
            aeron.invoke()
        system.sleep_ns(PAUSE_NS)


def _waiting(
    operation: Callable[Concatenate[ControlSession, _P], Turns[_RESULT]],
) -> "Callable[Concatenate[AeronArchive, _P], _RESULT]":
    """An operation as a method that waits for its result."""

    def method(archive: "AeronArchive", /, *args: _P.args, **kwargs: _P.kwargs) -> _RESULT:
        with archive.lock:
            try:
                return run(archive.aeron, operation(archive.session, *args, **kwargs))
            finally:
                archive.session.report_unclaimed()

    update_wrapper(method, operation)
    return method


class AeronArchive(SessionHolder):
    """One session with one archive; any thread may call, one call is made at a time."""

    @classmethod
    def connect(cls, aeron: Aeron, context: ArchiveContext, clock: Clock | None = None) -> Self:
        """Open a session over this client of a media driver, which stays the caller's.

        Raises ArchiveTimeoutError, ArchiveError, ConfigurationError
        """
        connecting = Connecting(aeron, context, clock)
        try:
            return cls(run(aeron, until(connecting.poll)))
        except BaseException:
            connecting.close()
            raise

    start_recording = _waiting(recording.start_recording)
    extend_recording = _waiting(recording.extend_recording)
    stop_recording = _waiting(recording.stop_recording)
    try_stop_recording = _waiting(recording.try_stop_recording)
    stop_recording_subscription = _waiting(recording.stop_recording_subscription)
    try_stop_recording_subscription = _waiting(recording.try_stop_recording_subscription)
    stop_recording_by_identity = _waiting(recording.stop_recording_by_identity)
    stop_recording_publication = _waiting(recording.stop_recording_publication)
    add_recorded_publication = _waiting(recording.add_recorded_publication)
    add_recorded_exclusive_publication = _waiting(recording.add_recorded_exclusive_publication)

    start_replay = _waiting(replaying.start_replay)
    replay = _waiting(replaying.replay)
    stop_replay = _waiting(replaying.stop_replay)
    stop_all_replays = _waiting(replaying.stop_all_replays)
    request_replay_token = _waiting(replaying.request_replay_token)

    list_recordings = _waiting(listing.list_recordings)
    list_recordings_for_uri = _waiting(listing.list_recordings_for_uri)
    list_recording = _waiting(listing.list_recording)
    list_recording_subscriptions = _waiting(listing.list_recording_subscriptions)
    find_last_matching_recording = _waiting(listing.find_last_matching_recording)
    start_position = _waiting(listing.start_position)
    stop_position = _waiting(listing.stop_position)
    recording_position = _waiting(listing.recording_position)
    max_recorded_position = _waiting(listing.max_recorded_position)
    ask_archive_id = _waiting(listing.archive_id)

    truncate_recording = _waiting(segments.truncate_recording)
    purge_recording = _waiting(segments.purge_recording)
    detach_segments = _waiting(segments.detach_segments)
    delete_detached_segments = _waiting(segments.delete_detached_segments)
    purge_segments = _waiting(segments.purge_segments)
    attach_segments = _waiting(segments.attach_segments)
    migrate_segments = _waiting(segments.migrate_segments)
    update_channel = _waiting(segments.update_channel)

    replicate = _waiting(replication.replicate)
    stop_replication = _waiting(replication.stop_replication)
    try_stop_replication = _waiting(replication.try_stop_replication)

    keep_alive = _waiting(ControlSession.keep_alive)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
