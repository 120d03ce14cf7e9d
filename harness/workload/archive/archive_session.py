"""Connects a workload to the archive on the same host, over shared memory."""

import time

from windtunnel.driver.archive.client import AeronArchive, ArchiveContext
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.harness.workload.options import Options
from windtunnel.harness.workload.stop import Stop

CHANNEL = "aeron:ipc?term-length=64k"
"""Channel for control requests to an archive on the same host, and for its responses."""
ANSWER_NS = 2_000_000_000
"""Timeout after which a silent archive counts as dead, in a case that kills archives."""
RECORDINGS_MAX = 1_000
"""Maximum number of recordings requested per stream."""
NOT_STOPPED = -1
"""Stop position of an active recording, and recorded position of an inactive recording."""
LOOK_S = 0.02
"""Interval between polls of an archive."""


def wait_for_recording(archive: AeronArchive, stream_id: int, stop: Stop) -> RecordingDescriptor:
    """Wait for the first recording of a stream, and return it. Raises ArchiveError if the archive
    fails, or Stopped if a stop signal arrives.
    """
    found: list[RecordingDescriptor] = []
    while not archive.list_recordings_for_uri(0, RECORDINGS_MAX, "", stream_id, found.append):
        stop.check()
        time.sleep(LOOK_S)
    return found[0]


def context(options: Options) -> ArchiveContext:
    """Return the settings of an archive control session. The timeouts are Aeron's defaults."""
    return ArchiveContext(
        control_request_channel=CHANNEL,
        control_response_channel=CHANNEL,
        client_name=f"{options.role}-{options.traffic.id}",
    )
