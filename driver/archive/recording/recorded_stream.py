"""A stream that a client asked to record: its subscription and its active recordings.

Sessions end by themselves or with the stream. The subscription is closed when the stream was
stopped and the last session has ended. Starting and stopping is done by `recordings`.
"""

from dataclasses import dataclass, field

from windtunnel.driver.archive.control.control_session import ControlSession
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.recording.recording_session import RecordingSession
from windtunnel.driver.client.counter import Counter
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.subscription import Subscription


@dataclass(eq=False)
class RecordedStream:
    """The state of one request to record."""

    session: ControlSession
    correlation_id: int
    stream_id: int
    original_channel: str
    stripped_channel: str
    key: str
    auto_stop: bool
    extended_id: int | None = None
    "The recording to extend; None for new recordings."
    subscription: Subscription | None = None
    active: "list[ActiveRecording]" = field(default_factory=list)
    has_begun: bool = False
    "Whether anything has been recorded."
    is_over: bool = False
    is_end_deferred: bool = False
    "Whether a replication must end this stream before the end of its recordings is signalled."

    @property
    def subscription_id(self) -> int:
        """The id by which the client stops the recording."""
        assert self.subscription is not None
        return self.subscription.registration_id

    @property
    def counts_as_concurrent(self) -> bool:
        """Whether it counts towards the limit of concurrent recordings.

        Aeron counts a request from its start until its first session has ended; there a request
        that is stopped before it received an image counts forever.
        """
        return bool(self.active) or not self.has_begun


@dataclass(eq=False)
class ActiveRecording:
    """One image that is being recorded."""

    stream: RecordedStream
    descriptor: RecordingDescriptor
    session: RecordingSession
    counter: Counter
    image: Image

    @property
    def recording_id(self) -> int:
        return self.descriptor.recording_id

    @property
    def position(self) -> int:
        """The recorded position."""
        return self.session.position
