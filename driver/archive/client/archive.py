"""The blocking archive client, in which each call waits for the archive's response.

    with AeronArchive.connect(aeron, from_environment()) as archive:
        archive.start_recording("aeron:udp?endpoint=localhost:20121", 1001)
        archive.list_recordings(0, 100, print)
        subscription = archive.replay(0, "aeron:ipc", 1002)

`AeronArchive` has a method for each function in `operations`, with the same arguments.
"""

from collections.abc import Callable
from functools import update_wrapper
from typing import Concatenate, ParamSpec, Self, TypeVar

from windtunnel.driver.archive.client.connecting import Connecting
from windtunnel.driver.archive.client.context import ArchiveContext
from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.operations import listing, recording, replication, segments
from windtunnel.driver.archive.client.operations import replay as replaying
from windtunnel.driver.archive.client.session_holder import SessionHolder
from windtunnel.driver.archive.client.turns import Turns, advance, until
from windtunnel.driver.base import system
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.client import Aeron

_P = ParamSpec("_P")
_RESULT = TypeVar("_RESULT")

PAUSE_NS = 200_000
"""The pause in nanoseconds between polls of the response channel."""


def run(aeron: Aeron, turns: Turns[_RESULT]) -> _RESULT:
    """Run a non-blocking archive operation until it completes, sleeping between its steps. Returns
    the operation's result.
    """
    while True:
        is_done, value = advance(turns)
        if is_done:
            return value  # type: ignore[return-value]  # the result may be None
        if aeron.context.use_conductor_agent_invoker:
            aeron.invoke()
        system.sleep_ns(PAUSE_NS)


def _blocking(
    operation: Callable[Concatenate[ControlSession, _P], Turns[_RESULT]],
) -> "Callable[Concatenate[AeronArchive, _P], _RESULT]":
    """Convert a non-blocking operation to a method that waits for the result."""

    def method(archive: "AeronArchive", /, *args: _P.args, **kwargs: _P.kwargs) -> _RESULT:
        with archive.lock:
            try:
                return run(archive.aeron, operation(archive.session, *args, **kwargs))
            finally:
                archive.session.report_unclaimed()

    update_wrapper(method, operation)
    return method


class AeronArchive(SessionHolder):
    """A control session with an archive. It is thread-safe: calls are serialized."""

    @classmethod
    def connect(cls, aeron: Aeron, context: ArchiveContext, clock: Clock | None = None) -> Self:
        """Open a session with an archive. Closing the session does not close the given Aeron
        client.

        Raises ArchiveTimeoutError, ArchiveError, ConfigurationError
        """
        connecting = Connecting(aeron, context, clock)
        try:
            return cls(run(aeron, until(connecting.poll)))
        except BaseException:
            connecting.close()
            raise

    start_recording = _blocking(recording.start_recording)
    extend_recording = _blocking(recording.extend_recording)
    stop_recording = _blocking(recording.stop_recording)
    try_stop_recording = _blocking(recording.try_stop_recording)
    stop_recording_subscription = _blocking(recording.stop_recording_subscription)
    try_stop_recording_subscription = _blocking(recording.try_stop_recording_subscription)
    stop_recording_by_identity = _blocking(recording.stop_recording_by_identity)
    stop_recording_publication = _blocking(recording.stop_recording_publication)
    add_recorded_publication = _blocking(recording.add_recorded_publication)
    add_recorded_exclusive_publication = _blocking(recording.add_recorded_exclusive_publication)

    start_replay = _blocking(replaying.start_replay)
    replay = _blocking(replaying.replay)
    stop_replay = _blocking(replaying.stop_replay)
    stop_all_replays = _blocking(replaying.stop_all_replays)
    request_replay_token = _blocking(replaying.request_replay_token)

    list_recordings = _blocking(listing.list_recordings)
    list_recordings_for_uri = _blocking(listing.list_recordings_for_uri)
    list_recording = _blocking(listing.list_recording)
    list_recording_subscriptions = _blocking(listing.list_recording_subscriptions)
    find_last_matching_recording = _blocking(listing.find_last_matching_recording)
    start_position = _blocking(listing.start_position)
    stop_position = _blocking(listing.stop_position)
    recording_position = _blocking(listing.recording_position)
    max_recorded_position = _blocking(listing.max_recorded_position)
    request_archive_id = _blocking(listing.archive_id)

    truncate_recording = _blocking(segments.truncate_recording)
    purge_recording = _blocking(segments.purge_recording)
    detach_segments = _blocking(segments.detach_segments)
    delete_detached_segments = _blocking(segments.delete_detached_segments)
    purge_segments = _blocking(segments.purge_segments)
    attach_segments = _blocking(segments.attach_segments)
    migrate_segments = _blocking(segments.migrate_segments)
    update_channel = _blocking(segments.update_channel)

    replicate = _blocking(replication.replicate)
    stop_replication = _blocking(replication.stop_replication)
    try_stop_replication = _blocking(replication.try_stop_replication)

    keep_alive = _blocking(ControlSession.keep_alive)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
