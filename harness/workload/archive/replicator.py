"""Makes an archive replicate a recording from another host's archive, over their link.

    archive of b   recording ---- replay over the link ----> archive of a   copy
         ^                                                        ^
         '--- list recordings --- replicator on a --- replicate --'

The copy follows an active recording, and ends where the recording ends. The document has a
recorder's format and contains what the copying archive reported.
"""

from dataclasses import replace

from windtunnel.driver.archive.client import ArchiveError
from windtunnel.driver.archive.protocol.codes import RecordingSignal
from windtunnel.driver.archive.protocol.responses import RecordingSignalEvent
from windtunnel.driver.archive.replication.source_archive import NOT_CONNECTED
from windtunnel.harness.artifact.host.recording import RecorderFacts
from windtunnel.harness.scenario.schema.archive import CLIENT_RESPONSE_PORT, CONTROL_PORT
from windtunnel.harness.workload.archive.archive_session import (
    LOOK_NS,
    SteppedArchive,
    connect,
    context,
    first_recording,
)
from windtunnel.harness.workload.archive.recorder import Recorder
from windtunnel.harness.workload.options import Options
from windtunnel.harness.workload.routine import Routine, Surroundings, connected
from windtunnel.harness.workload.stop import GaveUp

CONTROL_STREAM = 10
"""Stream id of every archive's control stream."""


class Copying:
    """One replication, as reported by the destination archive."""

    def __init__(self, stream_id: int) -> None:
        self._recorder = Recorder(stream_id)
        self._has_ended = False

    def on_signal(self, signal: RecordingSignalEvent) -> None:
        """Note that the replication has ended if the archive's signal says so."""
        self._has_ended |= signal.signal == RecordingSignal.REPLICATE_END

    def follow(self, archive: SteppedArchive, facts: RecorderFacts) -> Routine[None]:
        """Wait until the copy has stopped. Raises GaveUp if the source archive is unreachable, and
        ArchiveError if the archive reports another error.
        """
        while not ((yield from self._recorder.look(archive)) and self._has_ended):
            facts.recordings = self._recorder.recordings
            _check(archive)
            yield LOOK_NS
        facts.recordings = self._recorder.recordings


def _check(archive: SteppedArchive) -> None:
    """Raise the archive's asynchronous error if there is one. If the source is unreachable, the
    error is raised as GaveUp.
    """
    try:
        archive.check_for_error_response()
    except ArchiveError as error:
        # Like Aeron's archive, this archive has no error code for an unreachable source.
        if NOT_CONNECTED in str(error):
            raise GaveUp(str(error)) from error
        raise


def replicate(options: Options, facts: RecorderFacts, surroundings: Surroundings) -> Routine[None]:
    """Have the archive replicate a recording to its end."""
    traffic, clock = options.traffic, surroundings.clock
    copying = Copying(traffic.stream_id)
    own_context = replace(context(options), on_recording_signal=copying.on_signal)
    source = f"aeron:udp?endpoint={options.case.address(traffic.recorded)}:{CONTROL_PORT}"
    here = f"aeron:udp?endpoint={options.case.address(traffic.replicated)}:{CLIENT_RESPONSE_PORT}"
    source_context = replace(
        context(options), control_request_channel=source, control_response_channel=here
    )
    with (yield from connected(surroundings)) as aeron:
        with (yield from connect(aeron, source_context, clock)) as archive:
            recording = yield from first_recording(archive, traffic.stream_id)
        with (yield from connect(aeron, own_context, clock)) as archive:
            yield from archive.replicate(recording.recording_id, source, CONTROL_STREAM)
            yield from copying.follow(archive, facts)
