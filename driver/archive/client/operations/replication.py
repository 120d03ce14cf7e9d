"""Replicates a recording from another archive.

The response is a replication id; later signals and errors of the replication carry it as
correlation id. Source: archive-protocol 3.13, 7.
"""

from dataclasses import dataclass

from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.operations.recording import unless_unknown
from windtunnel.driver.archive.client.turns import Turns
from windtunnel.driver.archive.protocol.codes import NULL_VALUE, ErrorCode
from windtunnel.driver.archive.protocol.replication import ReplicateRequest2, StopReplicationRequest


@dataclass(frozen=True, kw_only=True)
class ReplicationParams:
    """The destination, the end and the channels of a replication."""

    dst_recording_id: int = NULL_VALUE
    """The recording to extend; -1: a new one."""
    stop_position: int = NULL_VALUE
    """Where to stop; -1: at the source's end."""
    live_destination: str = ""
    """The destination of the live stream, to merge with it; empty: do not merge."""
    channel_tag_id: int = NULL_VALUE
    subscription_tag_id: int = NULL_VALUE
    replication_channel: str = ""
    """The channel of the replay from the source; empty: the archive's setting."""
    src_response_channel: str = ""
    """The channel of responses from the source; empty: the archive's setting."""
    file_io_max_length: int = NULL_VALUE
    replication_session_id: int = NULL_VALUE
    """The session id of the replay and of the copy; -1: that of the source recording."""
    encoded_credentials: bytes = b""


DEFAULT = ReplicationParams()


def replicate(
    session: ControlSession,
    src_recording_id: int,
    src_control_channel: str,
    src_control_stream_id: int,
    params: ReplicationParams = DEFAULT,
) -> Turns[int]:
    """Replicate a recording, and merge with its live stream if requested.

    Returns the replication id.
    """
    if params.live_destination and params.replication_session_id != NULL_VALUE:
        raise ValueError(
            f"live destination {params.live_destination} with replication session id "
            f"{params.replication_session_id}: expected only one of them, because the live "
            "stream has a session id"
        )
    response = yield from session.request(
        ReplicateRequest2,
        src_recording_id=src_recording_id, dst_recording_id=params.dst_recording_id,
        stop_position=params.stop_position, channel_tag_id=params.channel_tag_id,
        subscription_tag_id=params.subscription_tag_id,
        src_control_stream_id=src_control_stream_id,
        file_io_max_length=params.file_io_max_length,
        replication_session_id=params.replication_session_id,
        src_control_channel=src_control_channel, live_destination=params.live_destination,
        replication_channel=params.replication_channel,
        encoded_credentials=params.encoded_credentials,
        src_response_channel=params.src_response_channel,
    )  # fmt: skip
    return response.relevant_id


def stop_replication(session: ControlSession, replication_id: int) -> Turns[None]:
    """Stop a replication. Raises UNKNOWN_REPLICATION."""
    yield from session.request(StopReplicationRequest, replication_id=replication_id)


def try_stop_replication(session: ControlSession, replication_id: int) -> Turns[bool]:
    """Stop a replication. Returns whether it existed."""
    request = stop_replication(session, replication_id)
    return (yield from unless_unknown(request, ErrorCode.UNKNOWN_REPLICATION))
