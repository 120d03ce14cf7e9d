"""From a request's class to the operation that answers it, and from what goes wrong to an answer.

Source: archive-protocol 1.4, 3.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.control_session import ControlSession
from windtunnel.driver.archive.control.request_rejected import RequestRejected, code_of
from windtunnel.driver.archive.operation.listings import Listings
from windtunnel.driver.archive.operation.migration import Migration
from windtunnel.driver.archive.operation.queries import Queries
from windtunnel.driver.archive.operation.removal import Removal
from windtunnel.driver.archive.operation.segments import Segments
from windtunnel.driver.archive.protocol import replication as copied
from windtunnel.driver.archive.protocol import requests as asked
from windtunnel.driver.archive.protocol.layout import Message
from windtunnel.driver.archive.recording.recordings import Recordings
from windtunnel.driver.archive.replay.replays import Replays
from windtunnel.driver.archive.replication.replications import Replications
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client.image.image import Image

_Operation = Callable[[ControlSession, Any], object]


@dataclass(frozen=True)
class Operations:
    """Everything that can be asked of one archive."""

    recordings: Recordings
    replays: Replays
    listings: Listings
    queries: Queries
    removal: Removal
    segments: Segments
    migration: Migration
    replications: Replications


class RequestTable:
    """Hands each request to its operation."""

    def __init__(self, facilities: ArchiveResources, operations: Operations) -> None:
        self._facilities, self._replays = facilities, operations.replays
        self._table = _table(operations)

    def on_request(self, session: ControlSession, request: asked.Request, image: Image) -> None:
        """Do it, or say why not. `image` is where the request came from."""
        try:
            if isinstance(request, asked.ReplayRequest | asked.BoundedReplayRequest):
                self._replays.start(session, request, image)
            else:
                self._table[type(request)](session, request)
        except DriverError as error:
            if not isinstance(error, RequestRejected):
                self._facilities.errors.warn(f"{type(request).__name__}: {error}")
            session.error(request.correlation_id, str(error), code_of(error))


def _table(operations: Operations) -> dict[type[Message], _Operation]:
    recordings, replays, removal = operations.recordings, operations.replays, operations.removal
    listings, queries, segments = operations.listings, operations.queries, operations.segments
    return {
        asked.StartRecordingRequest: recordings.start,
        asked.StartRecordingRequest2: recordings.start,
        asked.ExtendRecordingRequest: recordings.extend,
        asked.ExtendRecordingRequest2: recordings.extend,
        asked.StopRecordingRequest: recordings.stop_by_channel,
        asked.StopRecordingSubscriptionRequest: recordings.stop_by_subscription,
        asked.StopRecordingByIdentityRequest: recordings.stop_by_identity,
        asked.ReplayTokenRequest: replays.issue_token,
        asked.StopReplayRequest: replays.stop,
        asked.StopAllReplaysRequest: replays.stop_all,
        asked.ListRecordingsRequest: listings.recordings,
        asked.ListRecordingsForUriRequest: listings.recordings_for_uri,
        asked.ListRecordingRequest: listings.recording,
        asked.ListRecordingSubscriptionsRequest: listings.subscriptions,
        asked.FindLastMatchingRecordingRequest: queries.find_last_matching,
        asked.RecordingPositionRequest: queries.recording_position,
        asked.StartPositionRequest: queries.start_position,
        asked.StopPositionRequest: queries.stop_position,
        asked.MaxRecordedPositionRequest: queries.max_recorded_position,
        asked.ArchiveIdRequest: queries.archive_id,
        asked.UpdateChannelRequest: queries.update_channel,
        asked.TruncateRecordingRequest: removal.truncate,
        asked.PurgeRecordingRequest: removal.purge,
        asked.DetachSegmentsRequest: segments.detach,
        asked.DeleteDetachedSegmentsRequest: segments.delete_detached,
        asked.PurgeSegmentsRequest: segments.purge,
        asked.AttachSegmentsRequest: segments.attach,
        asked.MigrateSegmentsRequest: operations.migration.migrate,
        copied.ReplicateRequest: operations.replications.start,
        copied.TaggedReplicateRequest: operations.replications.start,
        copied.ReplicateRequest2: operations.replications.start,
        copied.StopReplicationRequest: operations.replications.stop,
    }
