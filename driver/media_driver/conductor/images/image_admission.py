"""Decides whether a new session gets an image, so that forged SETUPs do not use up all image slots.

An image holds its slot while it is active, draining or lingering. It is *half-open* while its
session has sent no more than SETUPs. Slots are shared in proportion to those that are free:

    slots that a stream holds    alone, of 1,024    result
    < 2 x free slots             640                accepted, if it has < 64 half-open images
    < 3 x free slots             720                only confirmed sessions are accepted
    more                                            refused

All streams of an endpoint together hold less than 7 times the free slots. A sixteenth of the slots
does not count as free: it is left to endpoints that have no image, however many others are flooded.
`new_sessions` enforces a decision in the receiver for a time, so that refused SETUPs do not reach
the conductor.
"""

from typing import NamedTuple

import numpy as np

from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.media_driver.agent.agent_proxy import SlotPool
from windtunnel.driver.media_driver.receiver.receiver_state import ReceiverState

HALF_OPEN_IMAGES_MAX = 64
"""Number of half-open images of a stream from which on only confirmed sessions are accepted. It
limits what forged SETUPs cost in memory and time."""
UNCONFIRMED_SHARE, STREAM_SHARE, ENDPOINT_SHARE = 2, 3, 7
"""Maximum number of slots of a stream without confirmation, of a stream and of an endpoint, as
multiples of the number of free slots."""
RESERVED_SHARE = 16
"""The slots divided by those that are reserved for endpoints without an image."""
REFUSING_NS = 30 * NS_PER_MS
"""Time for which a stream that holds its share of the slots gets no image. It is shorter than the
interval at which publishers repeat SETUPs, so that no publisher always meets the same phase."""
RESTRICTED_NS = 1_000 * NS_PER_MS
"""Time for which only confirmed sessions of a stream get an image, after one was refused."""
HALF_OPEN_TIMEOUT_NS = 1_000 * NS_PER_MS
"""Time after which a half-open image ends if new sessions of its stream are restricted. A publisher
sends data or heartbeats every 100 ms as soon as it has received a status message."""


class Refusal(NamedTuple):
    """A decision against a new image."""

    text: str
    """Text for the error log."""
    refusing_ns: int
    """Time for which no session of the stream is accepted."""


class Usage(NamedTuple):
    """The image slots that are in use."""

    endpoint: int
    """Slots that the endpoint's streams hold."""
    stream: int
    """Slots that the stream holds."""
    half_open: int
    """Slots of the stream's half-open images."""
    free: int
    """Free slots that are not reserved."""
    is_reservation_open: bool
    """Whether a slot is free for an endpoint without an image."""

    @property
    def is_restricted(self) -> bool:
        """Whether only confirmed sessions are accepted."""
        is_busy = self.stream > 0 and self.stream >= UNCONFIRMED_SHARE * self.free
        return is_busy or self.half_open >= HALF_OPEN_IMAGES_MAX

    @property
    def is_exhausted(self) -> bool:
        """Whether no session is accepted."""
        if self.endpoint == 0:
            return not self.is_reservation_open
        is_over_share = self.stream >= STREAM_SHARE * self.free
        return is_over_share or self.endpoint >= ENDPOINT_SHARE * self.free


class ImageAdmission:
    """Counts the image slots in use, and decides about new images."""

    def __init__(self, receiver: ReceiverState, slots: SlotPool) -> None:
        self._images = receiver.images
        self._slots = slots
        self._is_held = np.zeros(receiver.images.size, dtype=bool)
        self._created_ns = np.zeros(receiver.images.size, dtype=np.int64)

    def on_created(self, slot: int, now_ns: int) -> None:
        """Count the slot of a new image, whose record is complete."""
        self._is_held[slot], self._created_ns[slot] = True, now_ns

    def on_freed(self, slot: int) -> None:
        """Cease to count the slot of an image."""
        self._is_held[slot] = False

    def is_half_open(self, slot: int) -> bool:
        """Return whether an image's session has sent no more than SETUPs."""
        return bool(self._images[slot]["last_packet_ns"] < self._created_ns[slot])

    def usage(self, endpoint_slot: int, stream_id: int) -> Usage:
        """Return how many image slots are in use by an endpoint and by a stream on it."""
        on_endpoint = self._is_held & (self._images["endpoint"] == endpoint_slot)
        on_stream = on_endpoint & (self._images["stream_id"] == stream_id)
        half_open = on_stream & (self._images["last_packet_ns"] < self._created_ns)
        return Usage(
            int(np.count_nonzero(on_endpoint)),
            int(np.count_nonzero(on_stream)),
            int(np.count_nonzero(half_open)),
            max(0, self._slots.free_count - self._slots.capacity // RESERVED_SHARE),
            self._slots.free_count > 0,
        )

    def refusal(self, endpoint_slot: int, stream_id: int, *, is_confirmed: bool) -> Refusal | None:
        """Return why a session gets no image, or None if it gets one."""
        usage = self.usage(endpoint_slot, stream_id)
        if usage.is_exhausted:
            return Refusal(
                f"{self._slots.capacity - self._slots.free_count} of {self._slots.capacity} images "
                f"are in use, {usage.stream} of them by streamId={stream_id} and {usage.endpoint} "
                "by its channel: the others are kept for other streams",
                REFUSING_NS,
            )
        if usage.is_restricted and not is_confirmed:
            return Refusal(
                f"streamId={stream_id} has {usage.stream} images, {usage.half_open} of them "
                "without data: sessions get an image when they repeat their SETUP",
                0,
            )
        return None
