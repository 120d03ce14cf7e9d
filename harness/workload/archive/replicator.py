"""Makes an archive replicate a recording from another host's archive, over their link.

    archive of b   recording ---- replay over the link ----> archive of a   copy
         ^                                                        ^
         '--- list recordings --- replicator on a --- replicate --'

The copy follows an active recording, and ends where the recording ends. The document has a
recorder's format and contains what the copying archive reported.
"""

import time
from dataclasses import replace

from windtunnel.driver.archive.client import AeronArchive, ArchiveError
from windtunnel.driver.archive.protocol.codes import RecordingSignal
from windtunnel.driver.archive.protocol.responses import RecordingSignalEvent
from windtunnel.driver.archive.replication.source_archive import NOT_CONNECTED
from windtunnel.driver.client.aeron import Aeron
from windtunnel.harness.artifact.host.recording import RecorderFacts
from windtunnel.harness.scenario.schema.archive import CLIENT_RESPONSE_PORT, CONTROL_PORT
from windtunnel.harness.workload.archive.archive_session import LOOK_S, context, wait_for_recording
from windtunnel.harness.workload.archive.document import write_at_end
from windtunnel.harness.workload.archive.recorder import Recorder
from windtunnel.harness.workload.options import Options
from windtunnel.harness.workload.stop import GaveUp, Stop

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

    def follow(self, archive: AeronArchive, facts: RecorderFacts, stop: Stop) -> None:
        """Wait until the copy has stopped. Raises GaveUp if the source archive is unreachable,
        ArchiveError if the archive reports another error, or Stopped if a stop signal arrives.
        """
        while not (self._recorder.look(archive) and self._has_ended):
            facts.recordings = self._recorder.recordings
            stop.check()
            _check(archive)
            time.sleep(LOOK_S)
        facts.recordings = self._recorder.recordings


def _check(archive: AeronArchive) -> None:
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


def run(options: Options, stop: Stop) -> None:
    """Have the archive replicate a recording to its end, and write a recorder's result file."""
    traffic, files = options.traffic, options.files.recorder(options.traffic.id)
    facts = RecorderFacts(traffic.stream_id, time.time_ns(), 0, None)
    copying = Copying(traffic.stream_id)
    own_context = replace(context(options), on_recording_signal=copying.on_signal)
    source = f"aeron:udp?endpoint={options.case.address(traffic.recorded)}:{CONTROL_PORT}"
    here = f"aeron:udp?endpoint={options.case.address(traffic.replicated)}:{CLIENT_RESPONSE_PORT}"
    with write_at_end(facts, files.document), Aeron(options.aeron_dir) as aeron:
        source_context = replace(
            context(options),
            control_request_channel=source,
            control_response_channel=here,
        )
        with AeronArchive.connect(aeron, source_context) as archive:
            recording = wait_for_recording(archive, traffic.stream_id, stop)
        with AeronArchive.connect(aeron, own_context) as archive:
            archive.replicate(recording.recording_id, source, CONTROL_STREAM)
            copying.follow(archive, facts, stop)
