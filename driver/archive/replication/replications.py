"""Starts and stops replications of other archives' recordings.

The response to a request contains the replication id, which all later responses and signals have as
their correlation id. Source: archive-protocol 3.13.
"""

from contextlib import suppress

from windtunnel.driver.archive.control.archive_resources import ArchiveResources, client_name
from windtunnel.driver.archive.control.control_session import ControlSession
from windtunnel.driver.archive.control.control_sessions import SessionIds
from windtunnel.driver.archive.control.request_rejected import RequestRejected
from windtunnel.driver.archive.observation import error_text
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
from windtunnel.driver.client.conductor.liveness import CLIENT_VERSION_LABEL
from windtunnel.driver.client.errors import ClientTerminatedError

_Request = ReplicateRequest | TaggedReplicateRequest | ReplicateRequest2


class Replications:
    """All replications of one archive. Only the conductor's thread uses them."""

    def __init__(
        self, resources: ArchiveResources, recordings: Recordings, ids: SessionIds
    ) -> None:
        self._resources, self._recordings, self._ids = resources, recordings, ids
        self._running: dict[int, ReplicationSession] = {}

    def start(self, session: ControlSession, request: _Request) -> None:
        """Start a replication. Parameters that are missing in the request message remain unset."""
        channels = self._channels(request)
        self._require_destination(request.dst_recording_id)
        resources, now_ns = self._resources, self._resources.clock.now_ns()
        replication_id = self._ids.next_id()
        response_channel = getattr(request, "src_response_channel", "")
        source = SourceArchive(
            resources.client,
            SourceAddress(
                request.src_control_channel, request.src_control_stream_id,
                response_channel or replication_channels.response_channel(resources.settings),
                resources.settings.control_response_stream_id,
                getattr(request, "encoded_credentials", b""),
                f"name={client_name(resources.archive_id)} replicationSessionId={replication_id} "
                f"{CLIENT_VERSION_LABEL}",
            ), resources.settings,
        )  # fmt: skip
        parameters = ReplicationRequest(
            source_id=request.src_recording_id, destination_id=request.dst_recording_id,
            stop_position=getattr(request, "stop_position", NULL_VALUE),
            file_io_max_length=getattr(request, "file_io_max_length", NULL_VALUE),
            session_id=getattr(request, "replication_session_id", NULL_VALUE), channels=channels,
        )  # fmt: skip
        self._running[replication_id] = ReplicationSession(
            replication_id, session, parameters, source, resources, self._recordings, now_ns
        )
        session.responses.ok(request.correlation_id, replication_id)

    def _channels(self, request: _Request) -> ReplicationChannels:
        """Return the channels with which a request replicates a recording. Raises RequestRejected
        if they cannot be combined, or ConfigurationError if one is not a valid URI.
        """
        requested = getattr(request, "replication_channel", "")
        channel = uri.parse(requested or self._resources.settings.replication_channel)
        tags = (
            getattr(request, "channel_tag_id", NULL_VALUE),
            getattr(request, "subscription_tag_id", NULL_VALUE),
        )
        is_tagged = tags != (NULL_VALUE, NULL_VALUE)
        if replication_channels.is_response(channel):
            if request.live_destination:
                raise RequestRejected(
                    "a response channel cannot be combined with a live destination: "
                    "remove one of them"
                )
            if is_tagged:
                raise RequestRejected(
                    "a response channel cannot be combined with tags: remove one of them"
                )
        if request.live_destination:
            uri.parse(request.live_destination)
        return ReplicationChannels(channel, request.live_destination, tags if is_tagged else None)

    def _require_destination(self, recording_id: int) -> None:
        if recording_id == NULL_VALUE:
            return
        found = self._resources.catalog.descriptor(recording_id)
        if found is None:
            raise RequestRejected(
                f"unknown destination recording id: {recording_id}", ErrorCode.UNKNOWN_RECORDING
            )
        is_active = self._recordings.active(recording_id) is not None
        if found.stop_position == NULL_VALUE or is_active:
            raise RequestRejected(
                f"cannot replicate to recording {recording_id}: it is active",
                ErrorCode.ACTIVE_RECORDING,
            )

    def stop(self, session: ControlSession, request: StopReplicationRequest) -> None:
        """Stop a replication. Data that was already copied is kept."""
        replication = self._running.get(request.replication_id)
        if replication is None or replication.is_done:
            raise RequestRejected(
                f"unknown replication id: {request.replication_id}", ErrorCode.UNKNOWN_REPLICATION
            )
        replication.end()
        session.responses.ok(request.correlation_id)

    def do_work(self, now_ns: int) -> int:
        """Run every replication. Returns the amount of work done."""
        work_count = 0
        for each in tuple(self._running.values()):
            work_count += self._run(each, now_ns)
            if each.is_done:
                del self._running[each.replication_id]
                self._close(each)
                work_count += 1
        return work_count

    def _run(self, session: ReplicationSession, now_ns: int) -> int:
        """Run one duty cycle of a replication. An unexpected error ends only this replication."""
        try:
            return session.do_work(now_ns)
        except ClientTerminatedError:
            raise
        except Exception as error:
            self._resources.errors.record(f"replication: {error_text.describe_error(error)}")
            session.fail(f"internal error of the replication: {error!r}")
            return 1

    def _close(self, session: ReplicationSession) -> None:
        try:
            session.close()
        except ClientTerminatedError:
            raise
        except Exception as error:
            self._resources.errors.record(f"replication: {error_text.describe_error(error)}")

    def close(self) -> None:
        """End every replication."""
        for each in self._running.values():
            each.end()
            # If the driver is gone, the other replications must still be closed.
            with suppress(ClientTerminatedError):
                self._close(each)
        self._running.clear()
