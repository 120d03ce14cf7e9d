"""Sessions of a workload with the archive of its own host, over shared memory."""

import time

from windtunnel.driver.archive.client import AeronArchive, ArchiveContext
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.harness.workload.options import Options
from windtunnel.harness.workload.stop import Stop

CHANNEL = "aeron:ipc?term-length=64k"
"""Control channel of an archive for clients of its own driver, and their response channel."""
ANSWER_NS = 2_000_000_000
"""If the case kills archives, one that does not respond for this long counts as dead and is
retried.
"""
RECORDINGS_MAX = 1_000
"""Maximum number of recordings requested per stream."""
NOT_STOPPED = -1
"""The stop position of an active recording; the recorded position of an inactive one."""
LOOK_S = 0.02
"""Interval between two polls of an archive."""


def wait_for_recording(archive: AeronArchive, stream_id: int, stop: Stop) -> RecordingDescriptor:
    """Return the first recording of a stream, once there is one. Raises ArchiveError, Stopped."""
    found: list[RecordingDescriptor] = []
    while not archive.list_recordings_for_uri(0, RECORDINGS_MAX, "", stream_id, found.append):
        stop.check()
        time.sleep(LOOK_S)
    return found[0]


def context(options: Options) -> ArchiveContext:
    """The settings of a session with the archive, with Aeron's default timeouts."""
    return ArchiveContext(
        control_request_channel=CHANNEL,
        control_response_channel=CHANNEL,
        client_name=f"{options.role}-{options.traffic.id}",
    )
