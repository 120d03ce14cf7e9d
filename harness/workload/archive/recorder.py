"""Makes an archive record a stream, and polls the archive until the recording has stopped.

    recorder --start recording--> archive --subscribes--> driver
             <-- position -------
             <-- stop position --

The process prints `ready` when the archive has subscribed and records everything that is published
afterwards. The archive's subscription ends with its first image (auto stop). If the archive dies,
the recorder waits for its replacement and requests the recording again. The recorder's document
contains what the archive reported. The judge reads the recording's files.
"""

from dataclasses import replace

from windtunnel.driver.archive.client import ArchiveError, ArchiveTimeoutError
from windtunnel.driver.archive.protocol.codes import NULL_VALUE, ErrorCode, SourceLocation
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.base.errors import DriverError
from windtunnel.harness.artifact.host.recording import Recorded, RecorderFacts
from windtunnel.harness.workload.archive.archive_session import (
    ANSWER_NS,
    LOOK_NS,
    NOT_STOPPED,
    RECORDINGS_MAX,
    SteppedArchive,
    connect,
    context,
)
from windtunnel.harness.workload.options import Options
from windtunnel.harness.workload.routine import Routine, Surroundings, connected

RETRY_NS = 100_000_000


class Recorder:
    """The recordings of one stream, as reported by the archive."""

    def __init__(self, stream_id: int) -> None:
        self._stream_id = stream_id
        self._reported: dict[int, int] = {}
        """Highest position that the archive reported for each active recording."""
        self._found: dict[int, RecordingDescriptor] = {}
        self._before: frozenset[int] = frozenset()
        """Recordings that existed before the archive last subscribed."""
        self._requested_from = NULL_VALUE
        """Id of the archive that got the last request. A restarted archive has a different id."""

    @property
    def recordings(self) -> list[Recorded]:
        """All recordings of the stream, in the order of their ids."""
        return [
            Recorded(
                recording_id=each.recording_id,
                session_id=each.session_id,
                start_position=each.start_position,
                stop_position=each.stop_position,
                told_position=self._reported.get(each.recording_id, each.start_position),
            )
            for _, each in sorted(self._found.items())
        ]

    def begin(
        self, archive: SteppedArchive, channel: str, location: SourceLocation
    ) -> Routine[None]:
        """Ask the archive to record the next image of the stream, unless this archive has already
        been asked.
        """
        if archive.archive_id == self._requested_from != NULL_VALUE:
            # Only the session was lost. The recording continues, or has stopped by now.
            return
        yield from self._list(archive)
        before = frozenset(self._found)
        try:
            yield from archive.start_recording(channel, self._stream_id, location, auto_stop=True)
        except ArchiveError as error:
            if error.code != ErrorCode.ACTIVE_SUBSCRIPTION:
                raise
        else:
            self._before = before
        self._requested_from = archive.archive_id

    def look(self, archive: SteppedArchive) -> Routine[bool]:
        """Poll all recordings. Returns whether the last requested recording has stopped."""
        yield from self._list(archive)
        running = [each for each in self._found.values() if each.stop_position == NOT_STOPPED]
        for each in running:
            position = yield from archive.recording_position(each.recording_id)
            # A recording that has stopped since has no recorded position.
            if position != NOT_STOPPED:
                self._reported[each.recording_id] = position
        own = self._found.keys() - self._before
        return bool(own) and not running

    def _list(self, archive: SteppedArchive) -> Routine[None]:
        def note(found: RecordingDescriptor) -> None:
            self._found[found.recording_id] = found

        yield from archive.list_recordings_for_uri(0, RECORDINGS_MAX, "", self._stream_id, note)


def record(options: Options, facts: RecorderFacts, surroundings: Surroundings) -> Routine[None]:
    """Have the archive record a stream to its end."""
    recorder = Recorder(options.traffic.stream_id)
    try:
        yield from _follow(options, recorder, surroundings)
    finally:
        facts.recordings = recorder.recordings


def _follow(options: Options, recorder: Recorder, surroundings: Surroundings) -> Routine[None]:
    """Poll the archive until the recording has stopped, and reconnect after each failure."""
    was_ready = False
    settings, clock = context(options), surroundings.clock
    connect_until_ns = clock.now_ns() + settings.message_timeout_ns
    if any(each.kills_archive for each in options.case.events):
        settings = replace(settings, message_timeout_ns=ANSWER_NS)
    while True:
        try:
            with (
                (yield from connected(surroundings)) as aeron,
                (yield from connect(aeron, settings, clock)) as archive,
            ):
                yield from recorder.begin(archive, *_source(options))
                if not was_ready:
                    was_ready = True
                    surroundings.on_ready()
                while not (yield from recorder.look(archive)):
                    yield LOOK_NS
                return
        except DriverError as error:
            # An archive that responded before and does not now is dead, or not running again yet.
            is_slow = isinstance(error, ArchiveTimeoutError)
            may_begin = is_slow and clock.now_ns() < connect_until_ns
            if not was_ready and not may_begin:
                raise
        yield RETRY_NS


def _source(options: Options) -> tuple[str, SourceLocation]:
    """Return the channel and the source location with which the archive subscribes.

    These select what the archive's host receives, or what it sends.
    """
    traffic = options.traffic
    if traffic.recorded in traffic.publishers:
        return traffic.channel, SourceLocation.LOCAL
    return traffic.receive, SourceLocation.REMOTE
