"""Decides whether a new session gets an image, so that forged SETUPs do not use up all images.

An image holds its slot while it is active, draining or lingering. It is *half-open* while its
session has sent no more than SETUPs. The longer a session has repeated its SETUP, the more images
its stream may have already (`new_sessions` has the levels):

    level         images of the stream                  half-open ones
    FIRST         < 2 x free slots, 640 if it is alone  < 24
    REPEATED      < 3 x free slots, 720 if it is alone  < 32
    PERSISTENT    < 3 x free slots, 720 if it is alone  < 128

All streams of an endpoint together hold less than 7 times the free slots. A sixteenth of the slots
does not count as free: it is left to endpoints that have no image, however many others are flooded.
The receiver enforces a decision for a time, so that few refused SETUPs reach the conductor.

A half-open image gives way after a second only if its stream gets no image even for PERSISTENT
sessions. Otherwise it ends like any silent image. Forged sessions that do not repeat their SETUPs
for a second thus cause few images to be made: each one costs the conductor about a millisecond, in
which a SHARED driver does nothing else.
"""

from typing import NamedTuple

import numpy as np

from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.media_driver.agent.agent_proxy import SlotPool
from windtunnel.driver.media_driver.receiver import new_sessions
from windtunnel.driver.media_driver.receiver.receiver_state import ReceiverState

HALF_OPEN_IMAGES_MAX = (24, 32, 128)
"""Maximum number of half-open images of a stream, for each level. It limits what forged SETUPs cost
the driver and its clients in memory and time."""
STREAM_SHARE = (2, 3, 3)
"""Maximum number of slots of a stream as a multiple of the free slots, for each level."""
ENDPOINT_SHARE = 7
"""Maximum number of slots of an endpoint as a multiple of the free slots."""
RESERVED_SHARE = 16
"""The slots divided by those that are reserved for endpoints without an image."""
RESTRICTED_NS = 1_000 * NS_PER_MS
"""Time for which a stream is restricted after it got no image for a SETUP."""
HALF_OPEN_TIMEOUT_NS = 1_000 * NS_PER_MS
"""Time after which a half-open image ends if its stream gets no image for any session. A
publisher sends data or heartbeats every 100 ms as soon as it has received a status message."""


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

    def is_at_limit(self, level: int) -> bool:
        """Return whether the stream gets no image for a session of this level."""
        if self.endpoint == 0:
            return not self.is_reservation_open
        return (
            self.stream >= STREAM_SHARE[level] * self.free
            or self.half_open >= HALF_OPEN_IMAGES_MAX[level]
            or self.endpoint >= ENDPOINT_SHARE * self.free
        )


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
        held = np.flatnonzero(self._is_held)
        on_endpoint = self._images["endpoint"][held] == endpoint_slot
        on_stream = on_endpoint & (self._images["stream_id"][held] == stream_id)
        half_open = on_stream & (self._images["last_packet_ns"][held] < self._created_ns[held])
        return Usage(
            int(np.count_nonzero(on_endpoint)),
            int(np.count_nonzero(on_stream)),
            int(np.count_nonzero(half_open)),
            max(0, self._slots.free_count - self._slots.capacity // RESERVED_SHARE),
            self._slots.free_count > 0,
        )

    def is_full(self, endpoint_slot: int, stream_id: int) -> bool:
        """Return whether a stream gets no image, however long a session repeats its SETUP."""
        return self.usage(endpoint_slot, stream_id).is_at_limit(new_sessions.PERSISTENT)

    def refusal(self, endpoint_slot: int, stream_id: int, level: int) -> str | None:
        """Return why a session gets no image, or None if it gets one."""
        usage = self.usage(endpoint_slot, stream_id)
        if not usage.is_at_limit(level):
            return None
        in_use = self._slots.capacity - self._slots.free_count
        return (
            f"{in_use} of {self._slots.capacity} images are in use, {usage.endpoint} of them by "
            f"this channel and {usage.stream} by its streamId={stream_id}, which has "
            f"{usage.half_open} without data: sessions that repeat their SETUP are preferred"
        )
