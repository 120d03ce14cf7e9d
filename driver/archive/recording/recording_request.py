"""What somebody ordered to be recorded: a subscription, and each image of it that is recorded.

The sessions of an order end by themselves or with it; the subscription is closed when the order is
over and the last of them has ended. Knows nothing of how either comes about, see `recordings`.
"""

from dataclasses import dataclass, field

from windtunnel.driver.archive.control.control_session import ControlSession
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.recording.recording_session import RecordingSession
from windtunnel.driver.client.counter import Counter
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.subscription import Subscription


@dataclass(eq=False)
class RecordingOrder:
    """One request to record."""

    session: ControlSession
    correlation_id: int
    stream_id: int
    original_channel: str
    stripped_channel: str
    key: str
    auto_stop: bool
    extended_id: int | None = None
    "The recording that shall go on; None for new ones."
    subscription: Subscription | None = None
    active: "list[ActiveRecording]" = field(default_factory=list)
    has_begun: bool = False
    "Whether anything was recorded yet."
    is_over: bool = False
    is_held: bool = False
    "Whether somebody has to say something, and to end it, before its streams' ends are told."

    @property
    def subscription_id(self) -> int:
        """What the client knows it by."""
        assert self.subscription is not None
        return self.subscription.registration_id

    @property
    def counts(self) -> bool:
        """Whether it is one of the concurrent recordings.

        Aeron counts an order as soon as it is given and no longer once its first session has
        ended; one that is stopped before anything came is counted there for ever.
        """
        return bool(self.active) or not self.has_begun


@dataclass(eq=False)
class ActiveRecording:
    """One image that is being recorded."""

    order: RecordingOrder
    descriptor: RecordingDescriptor
    session: RecordingSession
    counter: Counter
    image: Image

    @property
    def recording_id(self) -> int:
        return self.descriptor.recording_id

    @property
    def position(self) -> int:
        """Up to where it is recorded."""
        return self.session.position
