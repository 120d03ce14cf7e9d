"""The archive client, which records, replays, lists, truncates and replicates recordings.

    from windtunnel.driver.archive.client import AeronArchive, ArchiveContext

    context = ArchiveContext(
        control_request_channel="aeron:udp?endpoint=localhost:8010",
        control_response_channel="aeron:udp?endpoint=localhost:0",
    )
    with Aeron(directory) as aeron, AeronArchive.connect(aeron, context) as archive:
        archive.start_recording("aeron:ipc", 1001)

The client works with this project's archive and with Aeron's. It only exchanges messages with the
archive and does not access its files.
"""

from windtunnel.driver.archive.client.archive import AeronArchive
from windtunnel.driver.archive.client.asynchronous import AsyncAeronArchive
from windtunnel.driver.archive.client.connecting import Connecting, ConnectState
from windtunnel.driver.archive.client.context import ArchiveContext, from_environment
from windtunnel.driver.archive.client.errors import (
    ArchiveClosedError,
    ArchiveError,
    ArchiveTimeoutError,
)
from windtunnel.driver.archive.client.operations.replay import ReplayParams, session_id_of
from windtunnel.driver.archive.client.operations.replication import ReplicationParams
from windtunnel.driver.archive.client.operations.segments import segment_base_position
from windtunnel.driver.archive.client.persistent_setup import (
    FROM_LIVE,
    FROM_START,
    FailureReason,
    PersistentParams,
    PersistentState,
)
from windtunnel.driver.archive.client.persistent_subscription import (
    PersistentHandlers,
    PersistentSubscription,
)
from windtunnel.driver.archive.client.recording_events import (
    RecordingEventHandlers,
    RecordingEvents,
)
from windtunnel.driver.archive.client.replay_merge import MergeState, ReplayMerge

__all__ = [
    "FROM_LIVE",
    "FROM_START",
    "AeronArchive",
    "ArchiveClosedError",
    "ArchiveContext",
    "ArchiveError",
    "ArchiveTimeoutError",
    "AsyncAeronArchive",
    "ConnectState",
    "Connecting",
    "FailureReason",
    "MergeState",
    "PersistentHandlers",
    "PersistentParams",
    "PersistentState",
    "PersistentSubscription",
    "RecordingEventHandlers",
    "RecordingEvents",
    "ReplayMerge",
    "ReplayParams",
    "ReplicationParams",
    "from_environment",
    "segment_base_position",
    "session_id_of",
]
