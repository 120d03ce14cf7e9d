"""What an archive tells its clients: answers, descriptors, signals, and events of recordings.

Source: archive-protocol 1.4, 1.5.
"""

from typing import Annotated

from windtunnel.driver.archive.protocol.codes import ControlResponseCode, RecordingSignal
from windtunnel.driver.archive.protocol.layout import I32, I64, Message, Wire, base, message


@base
class Response(Message):
    """What every answer begins with."""

    control_session_id: I64
    correlation_id: I64


@message(template_id=1, block_length=32)
class ControlResponse(Response):
    """How a request went; what `relevant_id` means depends on the request and the code."""

    relevant_id: I64
    code: ControlResponseCode
    version: Annotated[int, Wire("i", since=4)] = 0
    error_message: str


@message(template_id=59, block_length=20)
class Challenge(Response):
    """Who are you? A reader ignores `version`: Aeron's archive leaves whatever was there."""

    version: I32
    encoded_challenge: bytes


@message(template_id=106, block_length=8)
class Ping(Message):
    """Are you there? It is not answered."""

    control_session_id: I64


@message(template_id=22, block_length=80)
class RecordingDescriptor(Response):
    """All that a catalog knows of a recording; bytes of padding may follow.

    Units: timestamps in epoch ms; -1 as stop position or timestamp while it is being recorded
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
    """A subscription that is recorded now."""

    subscription_id: I64
    stream_id: I32
    stripped_channel: str


@message(template_id=24, block_length=44)
class RecordingSignalEvent(Response):
    """What happened to a recording, to the session that began it."""

    recording_id: I64
    subscription_id: I64
    position: I64
    signal: RecordingSignal


@message(template_id=101, block_length=24)
class RecordingStarted(Message):
    """To everybody who listens: an image is being recorded, from its join position on."""

    recording_id: I64
    start_position: I64
    session_id: I32
    stream_id: I32
    channel: str
    source_identity: str


@message(template_id=102, block_length=24)
class RecordingProgress(Message):
    """To everybody who listens: how far the recording of an image is."""

    recording_id: I64
    start_position: I64
    position: I64


@message(template_id=103, block_length=24)
class RecordingStopped(Message):
    """To everybody who listens: the recording of an image has ended."""

    recording_id: I64
    start_position: I64
    stop_position: I64
