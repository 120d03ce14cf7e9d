"""Copying a recording from another archive into the one that is asked.

The answer is a replication id; all that the replication has to tell later, signals and errors,
carries it as correlation id. Source: archive-protocol 3.13, 7.
"""

from dataclasses import dataclass

from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.operations.recording import unless_unknown
from windtunnel.driver.archive.client.turns import Turns
from windtunnel.driver.archive.protocol.codes import NULL_VALUE, ErrorCode
from windtunnel.driver.archive.protocol.replication import ReplicateRequest2, StopReplicationRequest


@dataclass(frozen=True, kw_only=True)
class ReplicationParams:
    """How far is copied, into what, and over which channels."""

    dst_recording_id: int = NULL_VALUE
    """The recording that is continued; -1: a new one."""
    stop_position: int = NULL_VALUE
    """Where to stop; -1: at the source's end."""
    live_destination: str = ""
    """Where the live stream can be heard, to go on with it once all is copied."""
    channel_tag_id: int = NULL_VALUE
    subscription_tag_id: int = NULL_VALUE
    replication_channel: str = ""
    """Where the copy is received; the archive's own setting where empty."""
    src_response_channel: str = ""
    """Where the source answers; the archive's own setting where empty."""
    file_io_max_length: int = NULL_VALUE
    replication_session_id: int = NULL_VALUE
    """The session id on the way and in the copy; -1: the source recording's."""
    encoded_credentials: bytes = b""


DEFAULT = ReplicationParams()


def replicate(
    session: ControlSession,
    src_recording_id: int,
    src_control_channel: str,
    src_control_stream_id: int,
    params: ReplicationParams = DEFAULT,
) -> Turns[int]:
    """Copy a recording, and follow it if it is live. Returns the replication id."""
    if params.live_destination and params.replication_session_id != NULL_VALUE:
        raise ValueError(
            f"live destination {params.live_destination} with replication session id "
            f"{params.replication_session_id}: expected only one of them, the live stream has "
            "a session id already"
        )
    answer = yield from session.ask(
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
    return answer.relevant_id


def stop_replication(session: ControlSession, replication_id: int) -> Turns[None]:
    """Stop copying. Raises UNKNOWN_REPLICATION."""
    yield from session.ask(StopReplicationRequest, replication_id=replication_id)


def try_stop_replication(session: ControlSession, replication_id: int) -> Turns[bool]:
    """The same. Returns whether there was anything to stop."""
    stopping = stop_replication(session, replication_id)
    return (yield from unless_unknown(stopping, ErrorCode.UNKNOWN_REPLICATION))
