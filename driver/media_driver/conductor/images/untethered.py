"""Readers that may be left behind: an untethered one that holds its stream back for too long.

    ACTIVE --at the window's end for the limit time-out--> LINGER --linger time-out--> RESTING
      ^                                    (its client is told)      |  or, without rejoin, closed
      +------------- resting time-out: rejoins, its client is told --+

A lingering reader still holds the stream back; a resting one does not. Source: spec 3.11,
Aeron 1.53 (the C driver where the two differ).
"""

from dataclasses import dataclass

from windtunnel.driver.cnc import counters
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.images import subscriber_positions
from windtunnel.driver.media_driver.conductor.images.subscriptions import Link, SubscriptionLinks


@dataclass(frozen=True)
class UntetheredTimeouts:
    """What a stream grants those who cannot keep up."""

    window_limit_ns: int
    linger_ns: int
    resting_ns: int


class UntetheredReaders:
    """Looks after the readers of one stream at a time; called by the timer."""

    def __init__(self, parts: DriverResources, links: SubscriptionLinks) -> None:
        self._parts = parts
        self._links = links

    def check(
        self, readers: list[Link], limit_position: int, timeouts: UntetheredTimeouts, now_ns: int
    ) -> None:
        """Move each reader on; those behind `limit_position` are holding the stream back."""
        for link in readers:
            entry = self._parts.conductor.subscribers[link.pool_index]
            quiet_ns = now_ns - int(entry["state_since_ns"])
            state = int(entry["state"])
            if link.subscription.parameters.is_tethered:
                entry["state_since_ns"] = now_ns
            elif state == subscriber_positions.ACTIVE:
                position = int(counters.get_acquire(self._parts.values, link.counter_id))
                if position > limit_position:
                    entry["state_since_ns"] = now_ns
                elif quiet_ns > timeouts.window_limit_ns:
                    self._links.tell_unavailable(link)
                    self._enter(link, subscriber_positions.LINGER, now_ns)
            elif state == subscriber_positions.LINGER and quiet_ns > timeouts.linger_ns:
                if link.subscription.parameters.is_rejoin:
                    self._enter(link, subscriber_positions.RESTING, now_ns)
                else:
                    self._links.close_position(link)
            elif state == subscriber_positions.RESTING and quiet_ns > timeouts.resting_ns:
                joined = link.stream.join_position()
                counters.set_release(self._parts.values, link.counter_id, joined)
                self._links.tell_available(link)
                self._enter(link, subscriber_positions.ACTIVE, now_ns)

    def _enter(self, link: Link, state: int, now_ns: int) -> None:
        entry = self._parts.conductor.subscribers[link.pool_index]
        entry["state"], entry["state_since_ns"] = state, now_ns
