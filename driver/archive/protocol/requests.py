"""Requests from a client to an archive, except requests about replication.

All requests except the connect request contain the control session id. Except for keep-alive and
close requests, the archive sends a response with the request's correlation id.
Source: archive-protocol 1.4, 1.5.
"""

from typing import Annotated

from windtunnel.driver.archive.protocol.codes import NULL_VALUE, BooleanType, SourceLocation
from windtunnel.driver.archive.protocol.layout import I32, I64, Message, Since, Wire, base, message


@base
class Request(Message):
    """Base class of all requests in an open control session. It declares their common fields."""

    control_session_id: I64
    correlation_id: I64


@base
class RecordingRequest(Request):
    """Base class of requests about one recording."""

    recording_id: I64


@message(template_id=58, block_length=16)
class AuthConnectRequest(Message):
    """Request to open a control session, with encoded credentials."""

    correlation_id: I64
    response_stream_id: I32
    version: I32
    response_channel: str
    encoded_credentials: bytes
    client_info: Annotated[str, Since(12)] = ""


@message(template_id=60, block_length=16)
class ChallengeResponse(Request):
    """Response to a challenge from the archive."""

    encoded_credentials: bytes


@message(template_id=3, block_length=8)
class CloseSessionRequest(Message):
    """Request to close the control session. There is no response."""

    control_session_id: I64


@message(template_id=61, block_length=16)
class KeepAliveRequest(Request):
    """Request to keep the control session active. There is no response."""


@message(template_id=68, block_length=16)
class ArchiveIdRequest(Request):
    """Request for the archive id."""


@message(template_id=4, block_length=24)
class StartRecordingRequest(Request):
    """Request to record the images of a subscription, each as a separate recording."""

    stream_id: I32
    source_location: SourceLocation
    channel: str


@message(template_id=63, block_length=28)
class StartRecordingRequest2(Request):
    """Request to record a subscription. With `auto_stop`, the subscription ends when its first
    image ends.
    """

    stream_id: I32
    source_location: SourceLocation
    auto_stop: BooleanType
    channel: str


@message(template_id=11, block_length=32)
class ExtendRecordingRequest(RecordingRequest):
    """Request to extend a recording from its stop position."""

    stream_id: I32
    source_location: SourceLocation
    channel: str


@message(template_id=64, block_length=36)
class ExtendRecordingRequest2(RecordingRequest):
    """Request to extend a recording. With `auto_stop`, the subscription ends when its first image
    ends.
    """

    stream_id: I32
    source_location: SourceLocation
    auto_stop: BooleanType
    channel: str


@message(template_id=5, block_length=20)
class StopRecordingRequest(Request):
    """Request to stop recording a channel and stream."""

    stream_id: I32
    channel: str


@message(template_id=14, block_length=24)
class StopRecordingSubscriptionRequest(Request):
    """Request to stop recording a subscription."""

    subscription_id: I64


@message(template_id=65, block_length=24)
class StopRecordingByIdentityRequest(RecordingRequest):
    """Request to stop one recording, given its recording id."""


@message(template_id=6, block_length=56)
class ReplayRequest(RecordingRequest):
    """Request to replay a recording."""

    position: I64
    length: I64
    replay_stream_id: I32
    file_io_max_length: Annotated[int, Wire("i", since=7)] = NULL_VALUE
    replay_token: Annotated[int, Wire("q", since=10)] = NULL_VALUE
    replay_channel: str


@message(template_id=18, block_length=60)
class BoundedReplayRequest(RecordingRequest):
    """Request to replay a recording up to the position in a counter."""

    position: I64
    length: I64
    limit_counter_id: I32
    replay_stream_id: I32
    file_io_max_length: Annotated[int, Wire("i", since=7)] = NULL_VALUE
    replay_token: Annotated[int, Wire("q", since=10)] = NULL_VALUE
    replay_channel: str


@message(template_id=105, block_length=24)
class ReplayTokenRequest(RecordingRequest):
    """Request for a replay token. The client includes the token in a replay request that it sends
    on an additional request publication.
    """


@message(template_id=7, block_length=24)
class StopReplayRequest(Request):
    """Request to stop a replay."""

    replay_session_id: I64


@message(template_id=19, block_length=24)
class StopAllReplaysRequest(RecordingRequest):
    """Request to stop all replays of a recording or, with recording id -1, of the archive."""


@message(template_id=8, block_length=28)
class ListRecordingsRequest(Request):
    """Request to list recording descriptors, starting at an id."""

    from_recording_id: I64
    record_count: I32


@message(template_id=9, block_length=32)
class ListRecordingsForUriRequest(Request):
    """Request to list the descriptors of recordings that match a stream id and part of a
    channel.
    """

    from_recording_id: I64
    record_count: I32
    stream_id: I32
    channel: str


@message(template_id=10, block_length=24)
class ListRecordingRequest(RecordingRequest):
    """Request for the descriptor of one recording."""


@message(template_id=16, block_length=32)
class FindLastMatchingRecordingRequest(Request):
    """Request to find the last recording that matches a session id, stream id and part of a
    channel.
    """

    min_recording_id: I64
    session_id: I32
    stream_id: I32
    channel: str


@message(template_id=17, block_length=32)
class ListRecordingSubscriptionsRequest(Request):
    """Request to list the subscriptions that are being recorded."""

    pseudo_index: I32
    subscription_count: I32
    apply_stream_id: BooleanType
    stream_id: I32
    channel: str


@message(template_id=12, block_length=24)
class RecordingPositionRequest(RecordingRequest):
    """Request for the recorded position of an active recording."""


@message(template_id=15, block_length=24)
class StopPositionRequest(RecordingRequest):
    """Request for the stop position of a recording."""


@message(template_id=52, block_length=24)
class StartPositionRequest(RecordingRequest):
    """Request for the start position of a recording."""


@message(template_id=67, block_length=24)
class MaxRecordedPositionRequest(RecordingRequest):
    """Request for the recorded position of an active recording, or for the stop position of a
    stopped one.
    """


@message(template_id=13, block_length=32)
class TruncateRecordingRequest(RecordingRequest):
    """Request to truncate a recording at a position."""

    position: I64


@message(template_id=104, block_length=24)
class PurgeRecordingRequest(RecordingRequest):
    """Request to delete a recording."""


@message(template_id=53, block_length=32)
class DetachSegmentsRequest(RecordingRequest):
    """Request to move the start position of a recording forward, and to keep the earlier files."""

    new_start_position: I64


@message(template_id=54, block_length=24)
class DeleteDetachedSegmentsRequest(RecordingRequest):
    """Request to delete the segment files before the start of a recording."""


@message(template_id=55, block_length=32)
class PurgeSegmentsRequest(RecordingRequest):
    """Request to move the start position of a recording forward, and to delete the earlier
    files.
    """

    new_start_position: I64


@message(template_id=56, block_length=24)
class AttachSegmentsRequest(RecordingRequest):
    """Request to attach the existing segment files that directly precede a recording, and to move
    its start position back.
    """


@message(template_id=57, block_length=32)
class MigrateSegmentsRequest(Request):
    """Request to move the segment files of one recording to an adjacent recording."""

    src_recording_id: I64
    dst_recording_id: I64


@message(template_id=107, block_length=24)
class UpdateChannelRequest(RecordingRequest):
    """Request to change the channel of a recording."""

    channel: str
