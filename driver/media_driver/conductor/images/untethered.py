"""Drops untethered subscribers that slow down a stream for too long.

    ACTIVE --behind the window limit for the limit timeout--> LINGER --linger timeout--> RESTING
      ^                            (client: image unavailable)         |  or, without rejoin, closed
      +--- resting timeout: rejoins (client: image available) ---------+

A subscriber in LINGER still counts for flow control, but a subscriber in RESTING does not. Source:
spec 3.11, Aeron 1.53 (the C driver where the two differ).
"""

from typing import NamedTuple

from windtunnel.driver.cnc import counters
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.images import subscriber_positions
from windtunnel.driver.media_driver.conductor.images.subscriptions import (
    IPC_CHANNEL,
    Link,
    SubscriptionLinks,
)


class UntetheredTimeouts(NamedTuple):
    """A stream's timeouts for untethered subscribers, in nanoseconds."""

    window_limit_ns: int
    linger_ns: int
    resting_ns: int


class UntetheredReaders:
    """Checks the untethered subscribers of a stream when the timer expires."""

    def __init__(self, resources: DriverResources, links: SubscriptionLinks) -> None:
        self._resources = resources
        self._links = links

    def check(
        self, readers: list[Link], limit_position: int, timeouts: UntetheredTimeouts, now_ns: int
    ) -> None:
        """Update the state of a stream's untethered subscribers. A subscriber at or before
        `limit_position` is slowing down the stream.
        """
        for link in readers:
            entry = self._resources.conductor.subscribers[link.pool_index]
            quiet_ns = now_ns - int(entry["state_since_ns"])
            state = int(entry["state"])
            if link.subscription.parameters.is_tethered:
                entry["state_since_ns"] = now_ns
            elif state == subscriber_positions.ACTIVE:
                position = int(counters.get_acquire(self._resources.values, link.counter_id))
                if position > limit_position:
                    entry["state_since_ns"] = now_ns
                elif quiet_ns > timeouts.window_limit_ns:
                    self._links.notify_unavailable(link, IPC_CHANNEL)
                    self._enter(link, subscriber_positions.LINGER, now_ns)
            elif state == subscriber_positions.LINGER and quiet_ns > timeouts.linger_ns:
                if link.subscription.parameters.is_rejoin:
                    self._enter(link, subscriber_positions.RESTING, now_ns)
                else:
                    self._links.close_position(link)
            elif state == subscriber_positions.RESTING and quiet_ns > timeouts.resting_ns:
                joined = link.stream.join_position()
                counters.set_release(self._resources.values, link.counter_id, joined)
                self._links.notify_available(link)
                self._enter(link, subscriber_positions.ACTIVE, now_ns)

    def _enter(self, link: Link, state: int, now_ns: int) -> None:
        entry = self._resources.conductor.subscribers[link.pool_index]
        entry["state"], entry["state_since_ns"] = state, now_ns
