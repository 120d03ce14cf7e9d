"""What the driver does about writers that died in the middle: publishers in a log, clients in the
command ring.

A claim that is never committed blocks everything behind it. When a consumer has stood still for the
time-out although something waits, the claim is turned into padding. Source: spec 5, Aeron 1.53.
"""

from windtunnel.driver.cnc import counters, ring_buffer
from windtunnel.driver.logbuffer import descriptor, unblocker
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources


class StallDetector:
    """How long a consumer has stood where it stands, and whether something waits behind it."""

    def __init__(self, now_ns: int) -> None:
        self._position = -1
        self._since_ns = now_ns

    def is_stuck(self, position: int, is_waited_for: bool, timeout_ns: int, now_ns: int) -> bool:
        """Whether nothing has moved for longer than the time-out."""
        if position != self._position or not is_waited_for:
            self._position, self._since_ns = position, now_ns
            return False
        return now_ns > self._since_ns + timeout_ns


def unblock_log(parts: DriverResources, log: LogBuffer, position: int) -> bool:
    """Pad over the claim that blocks a log at `position`. Returns whether there was one."""
    is_unblocked = bool(
        unblocker.unblock(log.log, log.meta_at, log.term_length, log.initial_term_id, position)
    )
    if is_unblocked:
        counters.increment(parts.values, system_counters.UNBLOCKED_PUBLICATIONS)
    return is_unblocked


def check_publisher(
    parts: DriverResources,
    log: LogBuffer,
    watch: StallDetector,
    consumer_position: int,
    now_ns: int,
) -> None:
    """Unblock a log whose consumer has waited for too long."""
    terms_begun = int(descriptor.active_term_count_acquire(log.log, log.meta_at))
    is_waited_for = (
        terms_begun != consumer_position >> log.bits or log.producer_position() > consumer_position
    )
    timeout_ns = parts.context.publication_unblock_timeout_ns
    if watch.is_stuck(consumer_position, is_waited_for, timeout_ns, now_ns):
        unblock_log(parts, log, consumer_position)


class BlockedCommands:
    """Watches the command ring for a client that died while it wrote."""

    def __init__(self, parts: DriverResources) -> None:
        self._parts = parts
        self._watch = StallDetector(parts.clock.now_ns())

    def check(self, now_ns: int) -> None:
        """Unblock the ring when its head has not moved for the clients' liveness time-out."""
        ring = self._parts.cnc.to_driver
        head = int(ring_buffer.consumer_position(ring))
        is_waited_for = int(ring_buffer.producer_position(ring)) > head
        timeout_ns = self._parts.context.client_liveness_timeout_ns
        if self._watch.is_stuck(head, is_waited_for, timeout_ns, now_ns) and ring_buffer.unblock(
            ring
        ):
            counters.increment(self._parts.values, system_counters.UNBLOCKED_COMMANDS)
