"""Having an archive record a stream, and looking on until the recording has stopped.

    recorder --record it--> archive --subscribes--> driver
             <-- so far --
             <-- stopped -

Says `ready` when the archive has subscribed, so what is published afterwards is recorded. One
image is enough: the archive's subscription goes with it. An archive that dies is waited for, and
asked again. Leaves what it was told; what is in the files is for others to see.
"""

import time
from dataclasses import asdict, replace

from windtunnel.driver.archive.client import AeronArchive, ArchiveError, ArchiveTimeoutError
from windtunnel.driver.archive.protocol.codes import NULL_VALUE, ErrorCode, SourceLocation
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client.aeron import Aeron
from windtunnel.harness.artifact.host.recording import Recorded, RecorderFacts
from windtunnel.harness.workload.archive.archive_session import (
    ANSWER_NS,
    LOOK_S,
    NOT_STOPPED,
    RECORDINGS_MAX,
    context,
)
from windtunnel.harness.workload.archive.leaving import leaving
from windtunnel.harness.workload.options import Options
from windtunnel.harness.workload.progress import say
from windtunnel.harness.workload.stop import Stop

RETRY_S = 0.1


class Recorder:
    """One stream's recordings in one archive, as far as the archive tells."""

    def __init__(self, stream_id: int) -> None:
        self._stream_id = stream_id
        self._told: dict[int, int] = {}
        """Furthest position of each recording that was said while it went on."""
        self._found: dict[int, RecordingDescriptor] = {}
        self._before: frozenset[int] = frozenset()
        """Recordings that were there before the archive subscribed for the last time."""
        self._asked = NULL_VALUE
        """The archive that was asked last, by an id that its successor has not."""

    @property
    def recordings(self) -> list[Recorded]:
        """All of them, in the order of their ids."""
        return [
            Recorded(
                recording_id=each.recording_id,
                session_id=each.session_id,
                start_position=each.start_position,
                stop_position=each.stop_position,
                told_position=self._told.get(each.recording_id, each.start_position),
            )
            for _, each in sorted(self._found.items())
        ]

    def begin(self, archive: AeronArchive, channel: str, location: SourceLocation) -> None:
        """Have the next image recorded, unless the archive waits for it, or records it, already."""
        if archive.archive_id == self._asked != NULL_VALUE:
            # Only the session was lost: what was ordered goes on, or is over by now.
            return
        self._list(archive)
        before = frozenset(self._found)
        try:
            archive.start_recording(channel, self._stream_id, location, auto_stop=True)
        except ArchiveError as error:
            if error.code != ErrorCode.ACTIVE_SUBSCRIPTION:
                raise
        else:
            self._before = before
        self._asked = archive.archive_id

    def look(self, archive: AeronArchive) -> bool:
        """See how far it is. Returns whether what was begun last has stopped."""
        self._list(archive)
        running = [each for each in self._found.values() if each.stop_position == NOT_STOPPED]
        for each in running:
            position = archive.recording_position(each.recording_id)
            # One that has stopped meanwhile has no such position.
            if position != NOT_STOPPED:
                self._told[each.recording_id] = position
        own = self._found.keys() - self._before
        return bool(own) and not running

    def _list(self, archive: AeronArchive) -> None:
        def note(found: RecordingDescriptor) -> None:
            self._found[found.recording_id] = found

        archive.list_recordings_for_uri(0, RECORDINGS_MAX, "", self._stream_id, note)


def run(options: Options, stop: Stop) -> None:
    """See to it that a stream is recorded to its end, and leave the recorder's document."""
    traffic, files = options.traffic, options.files.recorder(options.traffic.id)
    facts = RecorderFacts(traffic.stream_id, time.time_ns(), 0, None)
    recorder = Recorder(traffic.stream_id)
    with leaving(facts, files.document):
        try:
            _follow(options, recorder, stop)
        finally:
            facts.recordings = [asdict(each) for each in recorder.recordings]


def _follow(options: Options, recorder: Recorder, stop: Stop) -> None:
    """Ask one session of the archive after the other until the recording has stopped."""
    was_ready = False
    wanted = context(options)
    patient_until_ns = time.monotonic_ns() + wanted.message_timeout_ns
    if any(each.kills_archive for each in options.case.events):
        wanted = replace(wanted, message_timeout_ns=ANSWER_NS)
    while True:
        stop.check()
        try:
            with (
                Aeron(options.aeron_dir) as aeron,
                AeronArchive.connect(aeron, wanted) as archive,
            ):
                recorder.begin(archive, *_source(options))
                if not was_ready:
                    was_ready = True
                    say("ready")
                while not recorder.look(archive):
                    stop.check()
                    time.sleep(LOOK_S)
                return
        except DriverError as error:
            # An archive that was there once and is silent: dead, or not yet alive again.
            is_slow = isinstance(error, ArchiveTimeoutError)
            may_begin = is_slow and time.monotonic_ns() < patient_until_ns
            if not was_ready and not may_begin:
                raise
            time.sleep(RETRY_S)


def _source(options: Options) -> tuple[str, SourceLocation]:
    """What the archive subscribes: what its host receives, or what it sends."""
    traffic = options.traffic
    if traffic.recorded in traffic.publishers:
        return traffic.channel, SourceLocation.LOCAL
    return traffic.receive, SourceLocation.REMOTE
