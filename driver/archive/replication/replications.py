"""Start and stop copies of recordings of other archives.

The answer to a request is the replication's id, which all later answers and signals carry as their
correlation id. Source: archive-protocol 3.13.
"""

from contextlib import suppress

from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.control_session import ControlSession
from windtunnel.driver.archive.control.control_sessions import SessionIds
from windtunnel.driver.archive.control.request_rejected import RequestRejected
from windtunnel.driver.archive.observation import unforeseen
from windtunnel.driver.archive.protocol.codes import NULL_VALUE, ErrorCode
from windtunnel.driver.archive.protocol.replication import (
    ReplicateRequest,
    ReplicateRequest2,
    StopReplicationRequest,
    TaggedReplicateRequest,
)
from windtunnel.driver.archive.recording.recordings import Recordings
from windtunnel.driver.archive.replication import replication_channels
from windtunnel.driver.archive.replication.replication_channels import ReplicationChannels
from windtunnel.driver.archive.replication.replication_request import ReplicationRequest
from windtunnel.driver.archive.replication.replication_session import ReplicationSession
from windtunnel.driver.archive.replication.source_archive import SourceAddress, SourceArchive
from windtunnel.driver.channel import uri
from windtunnel.driver.client.errors import ClientTerminatedError

_Asked = ReplicateRequest | TaggedReplicateRequest | ReplicateRequest2


class Replications:
    """The copies that one archive makes, in its conductor's thread."""

    def __init__(
        self, facilities: ArchiveResources, recordings: Recordings, ids: SessionIds
    ) -> None:
        self._facilities, self._recordings, self._ids = facilities, recordings, ids
        self._running: dict[int, ReplicationSession] = {}

    def start(self, session: ControlSession, request: _Asked) -> None:
        """Copy a recording. What a shorter kind of request does not say is left open."""
        channels = self._channels(request)
        self._require_destination(request.dst_recording_id)
        facilities, now_ns = self._facilities, self._facilities.clock.now_ns()
        replication_id = self._ids.next_id()
        response_channel = getattr(request, "src_response_channel", "")
        source = SourceArchive(
            facilities.client,
            SourceAddress(
                request.src_control_channel, request.src_control_stream_id,
                response_channel or replication_channels.response_channel(facilities.settings),
                facilities.settings.control_response_stream_id,
                getattr(request, "encoded_credentials", b""),
                f"name=archive replicationSessionId={replication_id}",
            ), facilities.settings,
        )  # fmt: skip
        wanted = ReplicationRequest(
            source_id=request.src_recording_id, destination_id=request.dst_recording_id,
            stop_position=getattr(request, "stop_position", NULL_VALUE),
            file_io_max_length=getattr(request, "file_io_max_length", NULL_VALUE),
            session_id=getattr(request, "replication_session_id", NULL_VALUE), channels=channels,
        )  # fmt: skip
        self._running[replication_id] = ReplicationSession(
            replication_id, session, wanted, source, facilities, self._recordings, now_ns
        )
        session.ok(request.correlation_id, replication_id)

    def _channels(self, request: _Asked) -> ReplicationChannels:
        """Raises Refusal, ConfigurationError."""
        given = getattr(request, "replication_channel", "")
        channel = uri.parse(given or self._facilities.settings.replication_channel)
        tags = (
            getattr(request, "channel_tag_id", NULL_VALUE),
            getattr(request, "subscription_tag_id", NULL_VALUE),
        )
        is_tagged = tags != (NULL_VALUE, NULL_VALUE)
        if replication_channels.is_response(channel):
            if request.live_destination:
                raise RequestRejected("response channels can't be used with live destinations")
            if is_tagged:
                raise RequestRejected("response channels can't be used with tagged replication")
        if request.live_destination:
            uri.parse(request.live_destination)
        return ReplicationChannels(channel, request.live_destination, tags if is_tagged else None)

    def _require_destination(self, recording_id: int) -> None:
        if recording_id == NULL_VALUE:
            return
        found = self._facilities.catalog.descriptor(recording_id)
        if found is None:
            raise RequestRejected(
                f"unknown destination recording id: {recording_id}", ErrorCode.UNKNOWN_RECORDING
            )
        is_active = self._recordings.active(recording_id) is not None
        if found.stop_position == NULL_VALUE or is_active:
            raise RequestRejected(
                f"cannot replicate to active recording {recording_id}", ErrorCode.ACTIVE_RECORDING
            )

    def stop(self, session: ControlSession, request: StopReplicationRequest) -> None:
        """Stop copying; what was copied stays."""
        found = self._running.get(request.replication_id)
        if found is None:
            raise RequestRejected(
                f"unknown replication id: {request.replication_id}", ErrorCode.UNKNOWN_REPLICATION
            )
        found.end()
        session.ok(request.correlation_id)

    def do_work(self, now_ns: int) -> int:
        """Go on with every copy. Returns an amount of work."""
        work_count = 0
        for each in tuple(self._running.values()):
            work_count += self._turn(each, now_ns)
            if each.is_done:
                del self._running[each.replication_id]
                self._close(each)
                work_count += 1
        return work_count

    def _turn(self, session: ReplicationSession, now_ns: int) -> int:
        """Go on with one; an error that nobody foresaw ends it alone."""
        try:
            return session.do_work(now_ns)
        except ClientTerminatedError:
            raise
        except Exception as error:
            self._facilities.errors.record(f"replication: {unforeseen.told(error)}")
            session.fail(f"the replication has met an error: {error!r}")
            return 1

    def _close(self, session: ReplicationSession) -> None:
        try:
            session.close()
        except ClientTerminatedError:
            raise
        except Exception as error:
            self._facilities.errors.record(f"replication: {unforeseen.told(error)}")

    def close(self) -> None:
        """End every copy."""
        for each in self._running.values():
            each.end()
            # Where the driver is gone the others have something to write down nevertheless.
            with suppress(ClientTerminatedError):
                self._close(each)
        self._running.clear()
