"""A stream that a client asked to record, with its subscription and its active recordings.

Recording sessions end when their image ends or when the stream is stopped. The subscription is
closed when the stream was stopped and the last session has ended. The module `recordings` starts
and stops streams.
"""

from dataclasses import dataclass, field

from windtunnel.driver.archive.control.control_session import ControlSession
from windtunnel.driver.archive.protocol.codes import RecordingSignal
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.recording.recording_session import RecordingSession
from windtunnel.driver.archive.recording.segment_writer import SegmentWriter
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client.counter import Counter
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.subscription import Subscription


@dataclass(eq=False)
class RecordedStream:
    """A stream that is recorded for a client or for a replication."""

    session: ControlSession
    correlation_id: int
    stream_id: int
    original_channel: str
    stripped_channel: str
    key: str
    auto_stop: bool
    extended_id: int | None = None
    """The id of the recording to extend, or None for new recordings."""
    subscription: Subscription | None = None
    """The subscription, or None until the driver has added it."""
    failure: DriverError | None = None
    """The error with which adding the subscription failed, or None."""
    reports_failure: bool = True
    """Whether the failure is sent to the client at once. A replication reports its failures
    itself.
    """
    beginning: "list[BeginningRecording]" = field(default_factory=list)
    active: "list[ActiveRecording]" = field(default_factory=list)
    has_begun: bool = False
    """Whether the recording of an image has begun."""
    is_over: bool = False
    is_end_deferred: bool = False
    """Whether the signal for the end of a recording waits until a replication has stopped the
    stream.
    """

    @property
    def subscription_id(self) -> int:
        """The subscription id with which the client can stop the recording."""
        assert self.subscription is not None
        return self.subscription.registration_id

    @property
    def is_closed(self) -> bool:
        """Whether the stream was stopped and its last recording has ended."""
        return self.is_over and not self.active and not self.beginning

    @property
    def counts_as_concurrent(self) -> bool:
        """Return whether the stream counts towards the limit on concurrent recordings.

        Aeron counts a request from its start until its first session has ended. In Aeron, a request
        that is stopped before it received an image counts forever.
        """
        return bool(self.active or self.beginning) or not self.has_begun


@dataclass(eq=False)
class BeginningRecording:
    """A recording that is about to begin: the driver has not added its position counter yet."""

    stream: RecordedStream
    descriptor: RecordingDescriptor
    signal: RecordingSignal
    image: Image
    writer: SegmentWriter
    counter_id: int
    """The registration id of the counter."""
    active: "ActiveRecording | None" = None
    """The recording that has begun, or None until then."""
    is_aborted: bool = False

    @property
    def recording_id(self) -> int:
        return self.descriptor.recording_id

    @property
    def position(self) -> int:
        """The recorded position: where the recording begins, until it has begun."""
        return self.image.join_position if self.active is None else self.active.position

    @property
    def is_done(self) -> bool:
        """Whether the recorded position is final."""
        return self.is_aborted if self.active is None else self.active.is_done


@dataclass(eq=False)
class ActiveRecording:
    """A recording in progress, with its image and position counter."""

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

    @property
    def is_done(self) -> bool:
        """Whether the recorded position is final."""
        return self.session.is_done
