"""How a workload speaks to the archive of its own host, over the shared memory of their driver."""

import time

from windtunnel.driver.archive.client import AeronArchive, ArchiveContext
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.harness.workload.options import Options
from windtunnel.harness.workload.stop import Stop

CHANNEL = "aeron:ipc?term-length=64k"
"""On which an archive hears the clients of its own driver, and is heard."""
ANSWER_NS = 2_000_000_000
"""Where archives are killed, one that is silent for so long is taken for dead, and asked again."""
RECORDINGS_MAX = 1_000
"""So many recordings of one stream are asked for."""
NOT_STOPPED = -1
"""The stop position of a recording that goes on; the position of one that does not."""
LOOK_S = 0.02
"""Between two looks at an archive."""


def wait_for_recording(archive: AeronArchive, stream_id: int, stop: Stop) -> RecordingDescriptor:
    """The first recording of a stream, once there is one. Raises ArchiveError, Stopped."""
    found: list[RecordingDescriptor] = []
    while not archive.list_recordings_for_uri(0, RECORDINGS_MAX, "", stream_id, found.append):
        stop.check()
        time.sleep(LOOK_S)
    return found[0]


def context(options: Options) -> ArchiveContext:
    """The settings of a session with the archive: as patient as any client of Aeron's."""
    return ArchiveContext(
        control_request_channel=CHANNEL,
        control_response_channel=CHANNEL,
        client_name=f"{options.role}-{options.traffic.id}",
    )
