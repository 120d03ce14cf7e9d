"""Requests to replicate a recording from another archive.

Source: archive-protocol 1.5.
"""

from typing import Annotated

from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.protocol.layout import I32, I64, Since, Wire, base, message
from windtunnel.driver.archive.protocol.requests import Request


@base
class SourceAndDestination(Request):
    """Base class of requests to replicate a recording of another archive. It declares the ids of
    the source recording and of the destination recording.
    """

    src_recording_id: I64
    dst_recording_id: I64


@message(template_id=50, block_length=36)
class ReplicateRequest(SourceAndDestination):
    """Request to replicate a recording, and to merge with its live stream if a live destination is
    given.
    """

    src_control_stream_id: I32
    src_control_channel: str
    live_destination: str


@message(template_id=62, block_length=52)
class TaggedReplicateRequest(SourceAndDestination):
    """Request to replicate a recording, with tags for the channel and the subscription."""

    channel_tag_id: I64
    subscription_tag_id: I64
    src_control_stream_id: I32
    src_control_channel: str
    live_destination: str


@message(template_id=66, block_length=68)
class ReplicateRequest2(SourceAndDestination):
    """Request to replicate a recording, with all parameters that a replication can have."""

    stop_position: I64
    channel_tag_id: I64
    subscription_tag_id: I64
    src_control_stream_id: I32
    file_io_max_length: Annotated[int, Wire("i", since=7)] = NULL_VALUE
    replication_session_id: Annotated[int, Wire("i", since=8)] = NULL_VALUE
    src_control_channel: str
    live_destination: str
    replication_channel: str
    encoded_credentials: Annotated[bytes, Since(8)] = b""
    src_response_channel: Annotated[str, Since(10)] = ""


@message(template_id=51, block_length=24)
class StopReplicationRequest(Request):
    """Request to stop a replication."""

    replication_id: I64
