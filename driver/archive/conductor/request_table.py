"""Maps each request class to an operation, and errors to error responses.

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
from windtunnel.driver.archive.protocol import replication, requests
from windtunnel.driver.archive.protocol.layout import Message
from windtunnel.driver.archive.recording.recording_requests import RecordingRequests
from windtunnel.driver.archive.recording.recordings import Recordings
from windtunnel.driver.archive.replay.replays import Replays
from windtunnel.driver.archive.replication.replications import Replications
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client.image.header import SourceImage

_Operation = Callable[[ControlSession, Any], object]


@dataclass(frozen=True)
class Operations:
    """The objects that implement the operations of one archive."""

    recordings: Recordings
    recording_requests: RecordingRequests
    replays: Replays
    listings: Listings
    queries: Queries
    removal: Removal
    segments: Segments
    migration: Migration
    replications: Replications


class RequestTable:
    """Dispatches each request to the operation that handles it."""

    def __init__(self, resources: ArchiveResources, operations: Operations) -> None:
        self._resources, self._replays = resources, operations.replays
        self._table = _table(operations)

    def on_request(
        self, session: ControlSession, request: requests.Request, image: SourceImage
    ) -> None:
        """Handle a request that came from `image`. If the request fails, the client receives an
        error response.
        """
        try:
            if isinstance(request, requests.ReplayRequest | requests.BoundedReplayRequest):
                self._replays.start(session, request, image)
            else:
                self._table[type(request)](session, request)
        except DriverError as error:
            if not isinstance(error, RequestRejected):
                self._resources.errors.warn(f"{type(request).__name__}: {error}")
            session.responses.error(request.correlation_id, str(error), code_of(error))


def _table(operations: Operations) -> dict[type[Message], _Operation]:
    recordings, replays, removal = (
        operations.recording_requests,
        operations.replays,
        operations.removal,
    )
    listings, queries, segments = operations.listings, operations.queries, operations.segments
    return {
        requests.StartRecordingRequest: recordings.start,
        requests.StartRecordingRequest2: recordings.start,
        requests.ExtendRecordingRequest: recordings.extend,
        requests.ExtendRecordingRequest2: recordings.extend,
        requests.StopRecordingRequest: recordings.stop_by_channel,
        requests.StopRecordingSubscriptionRequest: recordings.stop_by_subscription,
        requests.StopRecordingByIdentityRequest: recordings.stop_by_identity,
        requests.ReplayTokenRequest: replays.issue_token,
        requests.StopReplayRequest: replays.stop,
        requests.StopAllReplaysRequest: replays.stop_all,
        requests.ListRecordingsRequest: listings.recordings,
        requests.ListRecordingsForUriRequest: listings.recordings_for_uri,
        requests.ListRecordingRequest: listings.recording,
        requests.ListRecordingSubscriptionsRequest: listings.subscriptions,
        requests.FindLastMatchingRecordingRequest: queries.find_last_matching,
        requests.RecordingPositionRequest: queries.recording_position,
        requests.StartPositionRequest: queries.start_position,
        requests.StopPositionRequest: queries.stop_position,
        requests.MaxRecordedPositionRequest: queries.max_recorded_position,
        requests.ArchiveIdRequest: queries.archive_id,
        requests.UpdateChannelRequest: queries.update_channel,
        requests.TruncateRecordingRequest: removal.truncate,
        requests.PurgeRecordingRequest: removal.purge,
        requests.DetachSegmentsRequest: segments.detach,
        requests.DeleteDetachedSegmentsRequest: segments.delete_detached,
        requests.PurgeSegmentsRequest: segments.purge,
        requests.AttachSegmentsRequest: segments.attach,
        requests.MigrateSegmentsRequest: operations.migration.migrate,
        replication.ReplicateRequest: operations.replications.start,
        replication.TaggedReplicateRequest: operations.replications.start,
        replication.ReplicateRequest2: operations.replications.start,
        replication.StopReplicationRequest: operations.replications.stop,
    }
