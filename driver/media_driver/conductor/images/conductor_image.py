"""The conductor's data about an image: its log, counters, subscribers and state.

    ACTIVE --no subscribers, liveness timeout, or end of stream--> DRAINING
    DRAINING --consumed, and 5 status message intervals--> LINGER
    LINGER --no subscribers, or liveness timeout--> freed

A revoked stream makes the first two transitions immediately. In LINGER, the receiver has removed
the image and clients were notified that it is unavailable, but its log and positions remain for
subscribers that are still reading. The fields that change with every packet are in the
PUBLICATION_IMAGE record, which the agents share. Source: spec 3.9 and 3.10, Aeron 1.53 (the C
driver where the two differ).
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
    """The state of an image."""

    ACTIVE = "active"
    DRAINING = "draining"
    LINGER = "linger"


@dataclass(eq=False)
class PublicationImage:
    """An image of a UDP stream. Its `registration_id` is its correlation id."""

    registration_id: int
    session_id: int
    stream_id: int
    log: LogBuffer
    slot: int
    record: np.record
    endpoint: ChannelEndpoint
    source_identity: str
    channel_text: str
    """The channel on which the image is received."""
    counter_ids: list[int]
    values: np.ndarray
    positions: np.ndarray
    untethered_timeouts: UntetheredTimeouts
    requests_response: bool
    """Whether the image's publisher requested a response channel."""
    state: State = State.ACTIVE
    state_since_ns: int = 0
    is_released: bool = False
    """Whether the receiver has released the image."""
    reason_row: int = 0
    """Row of the last rejection reason in the receiver's table; 0 before there is one."""
    pages: np.ndarray | None = None
    """The map of the log's written pages. The image's record contains the address of this map."""
    loss_entry: np.ndarray | None = None
    """The image's entry for the loss report. The image's record contains its address."""

    @property
    def log_path(self) -> Path:
        """Path of the log buffer file that clients map."""
        return self.log.path

    def rcv_position(self) -> int:
        """Return the position up to which the image has no gaps."""
        return int(counters.get(self.values, int(self.record["rcv_pos_id"])))

    def hwm_position(self) -> int:
        """Return the highest received position of the image."""
        return int(counters.get_acquire(self.values, int(self.record["hwm_id"])))

    def readers(self) -> tuple[int, int]:
        """Return the lowest position of the image's subscribers, and the number of subscribers."""
        lowest, _, count = subscriber_positions.bounds(
            self.positions, int(self.record["first_subscriber"]), self.values
        )
        return int(lowest), int(count)

    def is_drained(self) -> bool:
        """Return whether every subscriber has consumed the image up to its first gap."""
        return self.readers()[0] >= self.rcv_position()

    def join_position(self) -> int:
        """Return a new subscriber's start position, which is never ahead of the other
        subscribers.
        """
        lowest, count = self.readers()
        return min(self.rcv_position(), lowest) if count else self.rcv_position()

    def accepts_readers(self) -> bool:
        """Return whether a new subscription can join the image.

        An image without subscribers is about to drain, so a new subscription gets a new image.
        """
        if self.readers()[1] == 0:
            return False
        if self.state is State.DRAINING:
            return not self.is_drained()
        return self.state is State.ACTIVE
