"""An image as the conductor sees it: log, counters, readers, and where it is in its life.

    ACTIVE --nobody reads, silence, or end of stream--> DRAINING --consumed and 5 status
    intervals--> RELEASING

The numbers that change with every packet are in its PUBLICATION_IMAGE record, which the agents
share. Source: spec 3.9 and 3.10, Aeron 1.53.
"""

import enum
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from driver.cnc import counters
from driver.logbuffer.log_buffer import LogBuffer
from driver.media_driver import subscriber_positions
from driver.media_driver.channel_endpoints import ChannelEndpoint


class State(enum.Enum):
    """Where an image is in its life."""

    ACTIVE = "active"
    DRAINING = "draining"
    RELEASING = "releasing"


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
    counter_ids: list[int]
    values: np.ndarray
    positions: np.ndarray
    is_rejoin: bool
    state: State = State.ACTIVE
    state_since_ns: int = 0

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

    def join_position(self) -> int:
        """Where a new reader starts: never ahead of a reader that is there."""
        lowest, count = self.readers()
        return min(self.rcv_position(), lowest) if count else self.rcv_position()

    def accepts_readers(self) -> bool:
        """Whether a subscription that comes now may join: while somebody has yet to read it."""
        if self.state is State.DRAINING:
            lowest, count = self.readers()
            return count > 0 and lowest < self.rcv_position()
        return self.state is State.ACTIVE
