"""Connects a workload to the archive on the same host, over shared memory, and requests recordings
from it without blocking.
"""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, Self, TypeVar

from windtunnel.driver.archive.client import ArchiveContext, Connecting
from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.operations import listing, recording, replay, replication
from windtunnel.driver.archive.client.session_holder import SessionHolder
from windtunnel.driver.archive.client.turns import Turns, until
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.client.aeron import Aeron
from windtunnel.harness.workload.options import Options
from windtunnel.harness.workload.routine import Routine

CHANNEL = "aeron:ipc?term-length=64k"
"""Channel for control requests to an archive on the same host, and for its responses."""
ANSWER_NS = 2_000_000_000
"""Timeout after which a silent archive counts as dead, in a case that kills archives."""
RECORDINGS_MAX = 1_000
"""Maximum number of recordings requested per stream."""
NOT_STOPPED = -1
"""Stop position of an active recording, and recorded position of an inactive recording."""
LOOK_NS = 20_000_000
"""Interval between polls of an archive."""

_P = ParamSpec("_P")
_RESULT = TypeVar("_RESULT")


def _requesting(
    operation: Callable[Concatenate[ControlSession, _P], Turns[_RESULT]],
) -> "Callable[Concatenate[SteppedArchive, _P], Turns[_RESULT]]":
    """Convert an operation of a session to a method, which does not block either."""

    def method(archive: "SteppedArchive", /, *args: _P.args, **kwargs: _P.kwargs) -> Turns[_RESULT]:
        return operation(archive.session, *args, **kwargs)

    return method


class SteppedArchive(SessionHolder):
    """A control session with an archive, whose requests are steps of a routine."""

    start_recording = _requesting(recording.start_recording)
    recording_position = _requesting(listing.recording_position)
    stop_position = _requesting(listing.stop_position)
    max_recorded_position = _requesting(listing.max_recorded_position)
    list_recordings_for_uri = _requesting(listing.list_recordings_for_uri)
    start_replay = _requesting(replay.start_replay)
    replicate = _requesting(replication.replicate)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(aeron: Aeron, settings: ArchiveContext, clock: Clock) -> Routine[SteppedArchive]:
    """Open a control session with an archive. Raises ArchiveError if the archive refuses it, and
    ArchiveTimeoutError if it does not respond.
    """
    connecting = Connecting(aeron, settings, clock)
    try:
        return SteppedArchive((yield from until(connecting.poll)))
    except BaseException:
        connecting.close()
        raise


def first_recording(archive: SteppedArchive, stream_id: int) -> Routine[RecordingDescriptor]:
    """Wait for the first recording of a stream, and return it. Raises ArchiveError if the archive
    fails.
    """
    found: list[RecordingDescriptor] = []
    while not (
        yield from archive.list_recordings_for_uri(0, RECORDINGS_MAX, "", stream_id, found.append)
    ):
        yield LOOK_NS
    return found[0]


def context(options: Options) -> ArchiveContext:
    """Return the settings of an archive control session. The timeouts are Aeron's defaults."""
    return ArchiveContext(
        control_request_channel=CHANNEL,
        control_response_channel=CHANNEL,
        client_name=f"{options.role}-{options.traffic.id}",
    )
