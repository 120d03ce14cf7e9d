"""The asyncio archive client, which lets other tasks run while a call awaits its response.

    archive = await AsyncAeronArchive.connect(aeron, context)
    subscription = await archive.replay(recording_id, "aeron:ipc", 1002)
    async for message in subscription:
        print(message.payload)

Several tasks may make calls at the same time, and each receives the response to its request. If a
call is cancelled, the archive still executes the request, and the response is discarded.
"""

from collections.abc import Awaitable, Callable
from functools import update_wrapper
from typing import Concatenate, ParamSpec, Self, TypeVar

from windtunnel.driver.archive.client.connecting import Connecting
from windtunnel.driver.archive.client.context import ArchiveContext
from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.operations import listing, recording, replication, segments
from windtunnel.driver.archive.client.operations import replay as replaying
from windtunnel.driver.archive.client.operations.replay import EVERYTHING, ReplayParams
from windtunnel.driver.archive.client.session_holder import SessionHolder
from windtunnel.driver.archive.client.turns import Turns, advance, until
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.client import Aeron, AsyncPublication, AsyncSubscription
from windtunnel.driver.client.asynchronous import Backoff

_P = ParamSpec("_P")
_RESULT = TypeVar("_RESULT")


async def run(aeron: Aeron, turns: Turns[_RESULT]) -> _RESULT:
    """Run a non-blocking archive operation until it completes, and let other asyncio tasks run
    between its steps. Returns the operation's result.
    """
    backoff = Backoff()
    try:
        while True:
            is_done, value = advance(turns)
            if is_done:
                return value  # type: ignore[return-value]  # the result may be None
            if aeron.context.use_conductor_agent_invoker:
                aeron.invoke()
            await backoff.wait()
    finally:
        turns.close()


def _awaiting(
    operation: Callable[Concatenate[ControlSession, _P], Turns[_RESULT]],
) -> "Callable[Concatenate[AsyncAeronArchive, _P], Awaitable[_RESULT]]":
    """Convert a non-blocking operation to a coroutine method."""

    async def method(
        archive: "AsyncAeronArchive", /, *args: _P.args, **kwargs: _P.kwargs
    ) -> _RESULT:
        return await archive.run(operation(archive.session, *args, **kwargs))

    update_wrapper(method, operation)
    return method


class AsyncAeronArchive(SessionHolder):
    """A control session with an archive, for use by the tasks of one event loop."""

    @classmethod
    async def connect(
        cls, aeron: Aeron, context: ArchiveContext, clock: Clock | None = None
    ) -> Self:
        """Open a session with an archive. Closing the session does not close the given Aeron
        client.

        Raises ArchiveTimeoutError, ArchiveError, ConfigurationError
        """
        connecting = Connecting(aeron, context, clock)
        try:
            return cls(await run(aeron, until(connecting.poll)))
        except BaseException:
            connecting.close()
            raise

    async def run(self, turns: Turns[_RESULT]) -> _RESULT:
        """Run a non-blocking operation on this session and return its result."""
        try:
            return await run(self.aeron, turns)
        finally:
            self.session.report_unclaimed()

    async def add_recorded_publication(self, channel: str, stream_id: int) -> AsyncPublication:
        """Add a publication that is recorded from its start."""
        adding = recording.add_recorded_publication(self.session, channel, stream_id)
        return AsyncPublication(await self.run(adding))

    async def add_recorded_exclusive_publication(
        self, channel: str, stream_id: int
    ) -> AsyncPublication:
        """Add an exclusive publication that is recorded from its start."""
        adding = recording.add_recorded_exclusive_publication(self.session, channel, stream_id)
        return AsyncPublication(await self.run(adding))

    async def replay(
        self, recording_id: int, channel: str, stream_id: int, params: ReplayParams = EVERYTHING
    ) -> AsyncSubscription:
        """Replay a recording. Returns a subscription that receives only this replay."""
        starting = replaying.replay(self.session, recording_id, channel, stream_id, params)
        return AsyncSubscription(await self.run(starting))

    start_recording = _awaiting(recording.start_recording)
    extend_recording = _awaiting(recording.extend_recording)
    stop_recording = _awaiting(recording.stop_recording)
    try_stop_recording = _awaiting(recording.try_stop_recording)
    stop_recording_subscription = _awaiting(recording.stop_recording_subscription)
    try_stop_recording_subscription = _awaiting(recording.try_stop_recording_subscription)
    stop_recording_by_identity = _awaiting(recording.stop_recording_by_identity)
    stop_recording_publication = _awaiting(recording.stop_recording_publication)

    start_replay = _awaiting(replaying.start_replay)
    stop_replay = _awaiting(replaying.stop_replay)
    stop_all_replays = _awaiting(replaying.stop_all_replays)
    request_replay_token = _awaiting(replaying.request_replay_token)

    list_recordings = _awaiting(listing.list_recordings)
    list_recordings_for_uri = _awaiting(listing.list_recordings_for_uri)
    list_recording = _awaiting(listing.list_recording)
    list_recording_subscriptions = _awaiting(listing.list_recording_subscriptions)
    find_last_matching_recording = _awaiting(listing.find_last_matching_recording)
    start_position = _awaiting(listing.start_position)
    stop_position = _awaiting(listing.stop_position)
    recording_position = _awaiting(listing.recording_position)
    max_recorded_position = _awaiting(listing.max_recorded_position)
    request_archive_id = _awaiting(listing.archive_id)

    truncate_recording = _awaiting(segments.truncate_recording)
    purge_recording = _awaiting(segments.purge_recording)
    detach_segments = _awaiting(segments.detach_segments)
    delete_detached_segments = _awaiting(segments.delete_detached_segments)
    purge_segments = _awaiting(segments.purge_segments)
    attach_segments = _awaiting(segments.attach_segments)
    migrate_segments = _awaiting(segments.migrate_segments)
    update_channel = _awaiting(segments.update_channel)

    replicate = _awaiting(replication.replicate)
    stop_replication = _awaiting(replication.stop_replication)
    try_stop_replication = _awaiting(replication.try_stop_replication)

    keep_alive = _awaiting(ControlSession.keep_alive)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
