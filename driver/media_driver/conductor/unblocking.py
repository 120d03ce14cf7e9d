"""Unblocks log buffers and the command ring buffer when a writer has died during a write.

A claim that is never committed blocks all later claims. If a consumer with a backlog has made no
progress for the timeout, the claim is replaced with padding. Source: spec 5, Aeron 1.53.
"""

from windtunnel.driver.cnc import counters, ring_buffer, ring_buffer_reader
from windtunnel.driver.logbuffer import descriptor, unblocker
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources


class StallDetector:
    """Detects a consumer that makes no progress although it has a backlog."""

    def __init__(self, now_ns: int) -> None:
        self._position = -1
        self._since_ns = now_ns

    def is_stalled(self, position: int, has_backlog: bool, timeout_ns: int, now_ns: int) -> bool:
        """Return whether a consumer's position has not changed for longer than the timeout,
        although the consumer has a backlog.
        """
        if position != self._position or not has_backlog:
            self._position, self._since_ns = position, now_ns
            return False
        return now_ns > self._since_ns + timeout_ns


def unblock_log(resources: DriverResources, log: LogBuffer, position: int) -> bool:
    """Replace the uncommitted claim at `position` with padding if it blocks the log. Returns
    whether a claim was replaced.
    """
    is_unblocked = bool(
        unblocker.unblock(log.log, log.meta_at, log.term_length, log.initial_term_id, position)
    )
    if is_unblocked:
        counters.increment(resources.values, system_counters.UNBLOCKED_PUBLICATIONS)
    return is_unblocked


def check_publisher(
    resources: DriverResources,
    log: LogBuffer,
    stall_detector: StallDetector,
    consumer_position: int,
    producer_position: int,
    now_ns: int,
) -> None:
    """Unblock a publication's log if its consumer is stalled."""
    terms_begun = int(descriptor.active_term_count_acquire(log.log, log.meta_at))
    has_backlog = (
        terms_begun != consumer_position >> log.bits or producer_position > consumer_position
    )
    timeout_ns = resources.context.publication_unblock_timeout_ns
    if stall_detector.is_stalled(consumer_position, has_backlog, timeout_ns, now_ns):
        unblock_log(resources, log, consumer_position)


class CommandUnblocker:
    """Unblocks the command ring buffer when a client has died while writing a command."""

    def __init__(self, resources: DriverResources) -> None:
        self._resources = resources
        self._stall_detector = StallDetector(resources.clock.now_ns())

    def check(self, now_ns: int) -> None:
        """Unblock the ring buffer if its head has not moved for the client liveness timeout."""
        ring = self._resources.cnc.to_driver
        head = int(ring_buffer.consumer_position(ring))
        has_backlog = int(ring_buffer.producer_position(ring)) > head
        timeout_ns = self._resources.context.client_liveness_timeout_ns
        if self._stall_detector.is_stalled(
            head, has_backlog, timeout_ns, now_ns
        ) and ring_buffer_reader.unblock(ring):
            counters.increment(self._resources.values, system_counters.UNBLOCKED_COMMANDS)
