"""What a client asks an archive for when it shall copy a recording from another archive.

Source: archive-protocol 1.5.
"""

from typing import Annotated

from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.protocol.layout import I32, I64, Since, Wire, base, message
from windtunnel.driver.archive.protocol.requests import Request


@base
class SourceAndDestination(Request):
    """Which recording of the other archive becomes which of this one."""

    src_recording_id: I64
    dst_recording_id: I64


@message(template_id=50, block_length=36)
class ReplicateRequest(SourceAndDestination):
    """Copy, and follow the live stream if there is a destination for it."""

    src_control_stream_id: I32
    src_control_channel: str
    live_destination: str


@message(template_id=62, block_length=52)
class TaggedReplicateRequest(SourceAndDestination):
    """The same on a channel and a subscription that carry these tags."""

    channel_tag_id: I64
    subscription_tag_id: I64
    src_control_stream_id: I32
    src_control_channel: str
    live_destination: str


@message(template_id=66, block_length=68)
class ReplicateRequest2(SourceAndDestination):
    """The same with everything that can be chosen."""

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
    """Stop copying."""

    replication_id: I64
