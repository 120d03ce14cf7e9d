"""Functions that replicate a recording from another archive.

The response contains a replication id, which later signals and errors of the replication have as
their correlation id. Source: archive-protocol 3.13, 7.
"""

from dataclasses import dataclass

from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.operations.recording import unless_unknown
from windtunnel.driver.archive.client.turns import Turns
from windtunnel.driver.archive.protocol.codes import NULL_VALUE, ErrorCode
from windtunnel.driver.archive.protocol.replication import ReplicateRequest2, StopReplicationRequest


@dataclass(frozen=True, kw_only=True)
class ReplicationParams:
    """The optional parameters of a replication, such as its destination recording, stop position
    and live destination.
    """

    dst_recording_id: int = NULL_VALUE
    """The id of the recording to extend, or -1 for a new recording."""
    stop_position: int = NULL_VALUE
    """The position at which the replication stops, or -1 for the end of the source recording."""
    live_destination: str = ""
    """The destination of the live stream with which the replication merges, or empty if it does
    not merge.
    """
    channel_tag_id: int = NULL_VALUE
    subscription_tag_id: int = NULL_VALUE
    replication_channel: str = ""
    """The channel on which the source is replayed, or empty for the archive's setting."""
    src_response_channel: str = ""
    """The channel for responses from the source archive, or empty for the archive's setting."""
    file_io_max_length: int = NULL_VALUE
    replication_session_id: int = NULL_VALUE
    """The session id of the replay and of the copy, or -1 for the source recording's session id."""
    encoded_credentials: bytes = b""


DEFAULT = ReplicationParams()


def replicate(
    session: ControlSession,
    src_recording_id: int,
    src_control_channel: str,
    src_control_stream_id: int,
    params: ReplicationParams = DEFAULT,
) -> Turns[int]:
    """Replicate a recording from another archive, and optionally merge with its live stream.

    Returns the replication id.
    """
    if params.live_destination and params.replication_session_id != NULL_VALUE:
        raise ValueError(
            f"live destination {params.live_destination} cannot be combined with replication "
            f"session id {params.replication_session_id}, because the live stream has a "
            "session id: remove one of them"
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
    """Stop a replication. Raises ArchiveError with the code UNKNOWN_REPLICATION if the replication
    id is unknown.
    """
    yield from session.request(StopReplicationRequest, replication_id=replication_id)


def try_stop_replication(session: ControlSession, replication_id: int) -> Turns[bool]:
    """Stop a replication. Returns whether the replication existed."""
    request = stop_replication(session, replication_id)
    return (yield from unless_unknown(request, ErrorCode.UNKNOWN_REPLICATION))
