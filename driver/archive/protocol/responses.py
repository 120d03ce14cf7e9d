"""Messages from an archive to its clients: responses, descriptors, signals and recording events.

Source: archive-protocol 1.4, 1.5.
"""

from typing import Annotated

from windtunnel.driver.archive.protocol.codes import ControlResponseCode, RecordingSignal
from windtunnel.driver.archive.protocol.layout import I32, I64, Message, Wire, base, message


@base
class Response(Message):
    """Base class of all responses. It declares their common fields."""

    control_session_id: I64
    correlation_id: I64


@message(template_id=1, block_length=32)
class ControlResponse(Response):
    """The result of a request. The meaning of `relevant_id` depends on the request and the code."""

    relevant_id: I64
    code: ControlResponseCode
    version: Annotated[int, Wire("i", since=4)] = 0
    error_message: str


@message(template_id=59, block_length=20)
class Challenge(Response):
    """A request for more credentials. Ignore `version`: Aeron's archive does not set this field."""

    version: I32
    encoded_challenge: bytes


@message(template_id=106, block_length=8)
class Ping(Message):
    """Message with which the archive checks whether the client is alive. The client does not
    respond.
    """

    control_session_id: I64


@message(template_id=22, block_length=80)
class RecordingDescriptor(Response):
    """The catalog's description of a recording. Padding bytes may follow the message.

    Units: timestamps are in epoch ms; stop position and timestamp are -1 while the recording is
    active
    """

    recording_id: I64
    start_timestamp: I64
    stop_timestamp: I64
    start_position: I64
    stop_position: I64
    initial_term_id: I32
    segment_file_length: I32
    term_buffer_length: I32
    mtu_length: I32
    session_id: I32
    stream_id: I32
    stripped_channel: str
    original_channel: str
    source_identity: str


@message(template_id=23, block_length=28)
class RecordingSubscriptionDescriptor(Response):
    """A description of a subscription that is being recorded."""

    subscription_id: I64
    stream_id: I32
    stripped_channel: str


@message(template_id=24, block_length=44)
class RecordingSignalEvent(Response):
    """A recording signal, sent to the control session that requested the recording, replication or
    other operation.
    """

    recording_id: I64
    subscription_id: I64
    position: I64
    signal: RecordingSignal


@message(template_id=101, block_length=24)
class RecordingStarted(Message):
    """Event published when the recording of an image has started at its join position."""

    recording_id: I64
    start_position: I64
    session_id: I32
    stream_id: I32
    channel: str
    source_identity: str


@message(template_id=102, block_length=24)
class RecordingProgress(Message):
    """Event published when the recorded position of an image has advanced."""

    recording_id: I64
    start_position: I64
    position: I64


@message(template_id=103, block_length=24)
class RecordingStopped(Message):
    """Event published when the recording of an image has stopped."""

    recording_id: I64
    start_position: I64
    stop_position: I64
