"""What a client asks an archive for, but replication.

All requests but the first of a session name the control session, and all but one of these are
answered with their correlation id.
Source: archive-protocol 1.4, 1.5.
"""

from typing import Annotated

from windtunnel.driver.archive.protocol.codes import NULL_VALUE, BooleanType, SourceLocation
from windtunnel.driver.archive.protocol.layout import I32, I64, Message, Since, Wire, base, message


@base
class Request(Message):
    """What every request of a session begins with."""

    control_session_id: I64
    correlation_id: I64


@base
class RecordingRequest(Request):
    """A request about one recording."""

    recording_id: I64


@message(template_id=58, block_length=16)
class AuthConnectRequest(Message):
    """Open a session; it has no id yet."""

    correlation_id: I64
    response_stream_id: I32
    version: I32
    response_channel: str
    encoded_credentials: bytes
    client_info: Annotated[str, Since(12)] = ""


@message(template_id=60, block_length=16)
class ChallengeResponse(Request):
    """The answer to an archive's challenge."""

    encoded_credentials: bytes


@message(template_id=3, block_length=8)
class CloseSessionRequest(Message):
    """Close the session; it is not answered."""

    control_session_id: I64


@message(template_id=61, block_length=16)
class KeepAliveRequest(Request):
    """Make the session active."""


@message(template_id=68, block_length=16)
class ArchiveIdRequest(Request):
    """Ask for the archive's id."""


@message(template_id=4, block_length=24)
class StartRecordingRequest(Request):
    """Record what a subscription receives, each image as a recording of its own."""

    stream_id: I32
    source_location: SourceLocation
    channel: str


@message(template_id=63, block_length=28)
class StartRecordingRequest2(Request):
    """The same; `auto_stop` ends the subscription with its first image."""

    stream_id: I32
    source_location: SourceLocation
    auto_stop: BooleanType
    channel: str


@message(template_id=11, block_length=32)
class ExtendRecordingRequest(RecordingRequest):
    """Record on where a recording stopped."""

    stream_id: I32
    source_location: SourceLocation
    channel: str


@message(template_id=64, block_length=36)
class ExtendRecordingRequest2(RecordingRequest):
    """The same; `auto_stop` ends the subscription with its first image."""

    stream_id: I32
    source_location: SourceLocation
    auto_stop: BooleanType
    channel: str


@message(template_id=5, block_length=20)
class StopRecordingRequest(Request):
    """Stop by channel and stream."""

    stream_id: I32
    channel: str


@message(template_id=14, block_length=24)
class StopRecordingSubscriptionRequest(Request):
    """Stop by the id of the subscription."""

    subscription_id: I64


@message(template_id=65, block_length=24)
class StopRecordingByIdentityRequest(RecordingRequest):
    """Stop by the id of the recording."""


@message(template_id=6, block_length=56)
class ReplayRequest(RecordingRequest):
    """Send a recording again."""

    position: I64
    length: I64
    replay_stream_id: I32
    file_io_max_length: Annotated[int, Wire("i", since=7)] = NULL_VALUE
    replay_token: Annotated[int, Wire("q", since=10)] = NULL_VALUE
    replay_channel: str


@message(template_id=18, block_length=60)
class BoundedReplayRequest(RecordingRequest):
    """Send a recording again, as far as a counter says."""

    position: I64
    length: I64
    limit_counter_id: I32
    replay_stream_id: I32
    file_io_max_length: Annotated[int, Wire("i", since=7)] = NULL_VALUE
    replay_token: Annotated[int, Wire("q", since=10)] = NULL_VALUE
    replay_channel: str


@message(template_id=105, block_length=24)
class ReplayTokenRequest(RecordingRequest):
    """Ask for a token with which another publication may start a replay."""


@message(template_id=7, block_length=24)
class StopReplayRequest(Request):
    """Stop one replay."""

    replay_session_id: I64


@message(template_id=19, block_length=24)
class StopAllReplaysRequest(RecordingRequest):
    """Stop the replays of a recording, or of all recordings with -1."""


@message(template_id=8, block_length=28)
class ListRecordingsRequest(Request):
    """List descriptors from an id on."""

    from_recording_id: I64
    record_count: I32


@message(template_id=9, block_length=32)
class ListRecordingsForUriRequest(Request):
    """List descriptors of a stream whose channel contains a text."""

    from_recording_id: I64
    record_count: I32
    stream_id: I32
    channel: str


@message(template_id=10, block_length=24)
class ListRecordingRequest(RecordingRequest):
    """List one descriptor."""


@message(template_id=16, block_length=32)
class FindLastMatchingRecordingRequest(Request):
    """Ask for the newest recording of a session whose channel contains a text."""

    min_recording_id: I64
    session_id: I32
    stream_id: I32
    channel: str


@message(template_id=17, block_length=32)
class ListRecordingSubscriptionsRequest(Request):
    """List the subscriptions that are recorded now."""

    pseudo_index: I32
    subscription_count: I32
    apply_stream_id: BooleanType
    stream_id: I32
    channel: str


@message(template_id=12, block_length=24)
class RecordingPositionRequest(RecordingRequest):
    """Ask how far a recording is."""


@message(template_id=15, block_length=24)
class StopPositionRequest(RecordingRequest):
    """Ask where a recording stopped."""


@message(template_id=52, block_length=24)
class StartPositionRequest(RecordingRequest):
    """Ask where a recording starts."""


@message(template_id=67, block_length=24)
class MaxRecordedPositionRequest(RecordingRequest):
    """Ask how far a recording is, or where it stopped."""


@message(template_id=13, block_length=32)
class TruncateRecordingRequest(RecordingRequest):
    """Take away everything from a position on."""

    position: I64


@message(template_id=104, block_length=24)
class PurgeRecordingRequest(RecordingRequest):
    """Take a recording away."""


@message(template_id=53, block_length=32)
class DetachSegmentsRequest(RecordingRequest):
    """Let a recording start later; its first files stay where they are."""

    new_start_position: I64


@message(template_id=54, block_length=24)
class DeleteDetachedSegmentsRequest(RecordingRequest):
    """Delete the files before a recording's start."""


@message(template_id=55, block_length=32)
class PurgeSegmentsRequest(RecordingRequest):
    """Let a recording start later and delete the files before."""

    new_start_position: I64


@message(template_id=56, block_length=24)
class AttachSegmentsRequest(RecordingRequest):
    """Let a recording start earlier, with files that were put there."""


@message(template_id=57, block_length=32)
class MigrateSegmentsRequest(Request):
    """Give the files of one recording to another."""

    src_recording_id: I64
    dst_recording_id: I64


@message(template_id=107, block_length=24)
class UpdateChannelRequest(RecordingRequest):
    """Change the channel in a descriptor."""

    channel: str
