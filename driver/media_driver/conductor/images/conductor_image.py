"""An image as the conductor sees it: log, counters, readers, and where it is in its life.

    ACTIVE --nobody reads, silence, or end of stream--> DRAINING --consumed, and 5 status
    intervals--> LINGER --nobody reads any more, or the liveness time-out--> gone

A revoked stream takes each of the first two steps at once. In LINGER the receiver knows the image
no more and clients were told that it is unavailable, but its log and positions stay for those who
still read. The numbers that change with every packet are in its PUBLICATION_IMAGE record, which the
agents share. Source: spec 3.9 and 3.10, Aeron 1.53 (the C driver where the two differ).
"""

import enum
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from windtunnel.driver.cnc import counters
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.media_driver.conductor.endpoints.channel_endpoints import ChannelEndpoint
from windtunnel.driver.media_driver.conductor.images import subscriber_positions
from windtunnel.driver.media_driver.conductor.images.untethered import UntetheredTimeouts


class State(enum.Enum):
    """Where an image is in its life."""

    ACTIVE = "active"
    DRAINING = "draining"
    LINGER = "linger"


@dataclass(eq=False)
class PublicationImage:
    """One image; `registration_id` is its correlation id."""

    registration_id: int
    session_id: int
    stream_id: int
    log: LogBuffer
    slot: int
    record: np.record
    endpoint: ChannelEndpoint
    source_identity: str
    channel_text: str
    """Of the channel that it came in on."""
    counter_ids: list[int]
    values: np.ndarray
    positions: np.ndarray
    untethered_timeouts: UntetheredTimeouts
    wants_response: bool
    """Its publisher asks to be told of the stream that answers it."""
    state: State = State.ACTIVE
    state_since_ns: int = 0
    is_released: bool = False
    """Whether the receiver has let go of it."""
    is_rejected: bool = False

    @property
    def log_path(self) -> Path:
        """What clients map."""
        return self.log.path

    def rcv_position(self) -> int:
        """How far the stream is contiguous."""
        return int(counters.get(self.values, int(self.record["rcv_pos_id"])))

    def hwm_position(self) -> int:
        """The highest position that was received."""
        return int(counters.get_acquire(self.values, int(self.record["hwm_id"])))

    def readers(self) -> tuple[int, int]:
        """The slowest reader's position and the number of readers."""
        lowest, _, count = subscriber_positions.bounds(
            self.positions, int(self.record["first_subscriber"]), self.values
        )
        return int(lowest), int(count)

    def is_drained(self) -> bool:
        """Whether every reader has read what is contiguous."""
        return self.readers()[0] >= self.rcv_position()

    def join_position(self) -> int:
        """Where a new reader starts: never ahead of a reader that is there."""
        lowest, count = self.readers()
        return min(self.rcv_position(), lowest) if count else self.rcv_position()

    def accepts_readers(self) -> bool:
        """Whether a subscription that comes now may join.

        An image that nobody reads is on its way out; who comes then has a new one made.
        """
        if self.readers()[1] == 0:
            return False
        if self.state is State.DRAINING:
            return not self.is_drained()
        return self.state is State.ACTIVE
