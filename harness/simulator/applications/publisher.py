"""A publisher that the simulator runs step by step. Each step sends what the pace and flow control
allow.

    connect --> publication, destinations --> subscribers, peers --> messages --> close

It writes the same files as a workload's publisher, with simulated times. It raises SubjectError if
a stream rejects a message that it must accept.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.harness.artifact.host.message_times import OFFER_TIME
from windtunnel.harness.artifact.host.offer import OFFER
from windtunnel.harness.artifact.run.plan import message_bytes, plan
from windtunnel.harness.artifact.run_dir import HostDir
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.simulator.network.in_flight import NEVER
from windtunnel.harness.simulator.world.virtual_time import AT_ONCE
from windtunnel.harness.workload.pacer import Pacer
from windtunnel.harness.workload.publisher_facts import (
    begin_facts,
    note_stream,
    refusal,
    require_turned,
)
from windtunnel.harness.workload.refused_time import RefusedTime
from windtunnel.harness.workload.stop import SubjectError


class Publisher:
    """Publishes the planned messages of one stream."""

    role = "publisher"

    def __init__(
        self,
        traffic: TrafficCase,
        seed: int,
        payload: NDArray[np.uint8],
        connect: Callable[[], Aeron | None],
        clock_ns: Callable[[], int],
        *,
        skips: bool,
        waits_for_readers: bool = False,
        joined: Callable[[], int] = lambda: 0,
    ) -> None:
        """Create a publisher that connects on its first step.

        `connect` creates a client, or returns None if no driver is running. `skips` leaves out the
        middle message. `waits_for_readers` offers a message again while no reader is connected.
        `joined` returns how many of the stream's subscribers have joined.
        """
        self.traffic = traffic
        self._joined = joined
        self._has_started = False
        self.peers: list[Publisher] = [self]
        """All publishers of the stream. None of them starts before all are connected."""
        self._connect = connect
        self._clock_ns = clock_ns
        self._client: Aeron | None = None
        self._payload = payload
        self._plan = plan(
            seed,
            traffic.id,
            traffic.total_bytes,
            traffic.longest_bytes,
            traffic.shortest_bytes,
        )
        self._waits_for_readers = waits_for_readers
        self._skip = self._plan.count // 2 if skips else -1
        self._offers = np.zeros(self._plan.count, dtype=OFFER)
        self._times = np.zeros(self._plan.count, dtype=OFFER_TIME)
        self._offered_ns = 0
        """Time of the first offer of the next message, or 0 if it has not been offered."""
        self._next = 0
        self._pacer = Pacer(traffic.pace)
        self._close_ns = 0
        """Time at which the publisher closes, or 0 while there are messages to send."""
        self.count_bytes = 0
        """Number of bytes in the messages that the publication has accepted."""
        self._registration = 0
        self.publication: Publication | None = None
        self.is_connected = False
        """Whether a subscriber has connected."""
        self._facts = begin_facts(traffic, clock_ns())
        self._refused = RefusedTime(clock_ns)
        self.is_done = False

    def step(self) -> int:
        """Connect, look up the publication or send messages, until the next action would block.

        Returns the time of the next step that is needed even if nothing else happens: AT_ONCE if
        this step has changed anything, or NEVER.
        """
        if self.is_done:
            return NEVER
        if self._client is None:
            self._request()
            return AT_ONCE
        if self.publication is None:
            self._find_publication(self._client)
            return NEVER if self.publication is None else AT_ONCE
        if not self.is_connected:
            self._check_connected(self.publication)
            return AT_ONCE if self.is_connected else NEVER
        if not self._may_start():
            return NEVER
        before = self._next
        next_ns = self._send(self.publication)
        return next_ns if self._next == before else AT_ONCE

    def _may_start(self) -> bool:
        """Return whether all peers are connected, and enough subscribers have joined."""
        if not self._has_started:
            is_connected = all(each.is_connected for each in self.peers)
            self._has_started = is_connected and self._joined() >= self.traffic.starts_with
        return self._has_started

    def _request(self) -> None:
        self._client = self._connect()
        if self._client is None:
            return
        add = self._client.async_add_publication
        if self.traffic.publication == "exclusive":
            add = self._client.async_add_exclusive_publication
        self._registration = add(self.traffic.channel, self.traffic.stream_id)

    def _find_publication(self, client: Aeron) -> None:
        if self.traffic.publication == "exclusive":
            self.publication = client.get_exclusive_publication(self._registration)
        else:
            self.publication = client.get_publication(self._registration)
        if self.publication is None:
            return
        for destination in self.traffic.destinations:
            self.publication.async_add_destination(destination)
        note_stream(self._facts, self.publication)

    def _check_connected(self, publication: Publication) -> None:
        if publication.is_closed:
            raise SubjectError(
                f"the publication was closed before it was connected: {publication.close_reason}"
            )
        self.is_connected = publication.is_connected
        self._facts.started_ns = self._clock_ns()

    def _send(self, publication: Publication) -> int:
        """Send what the pace and flow control allow. Returns the time at which the publisher has
        something to do again, or NEVER.
        """
        starts, lengths = self._plan.starts, self._plan.lengths
        while self._next < self._plan.count:
            if wait_ns := self._pacer.wait_ns(self._clock_ns()):
                return self._clock_ns() + wait_ns
            start, length = int(starts[self._next]), int(lengths[self._next])
            if self._next != self._skip:
                self._offered_ns = self._offered_ns or self._clock_ns()
                position = self._offer(publication, start, length)
                if position <= 0:
                    return NEVER
                self._offers[self._facts.message_count] = (self._next, length, 0, position)
                self._times[self._facts.message_count] = self._offered_ns
                self._offered_ns = 0
                self._facts.message_count += 1
                self.count_bytes += length
                self._pacer.add(length, self._clock_ns())
            self._next += 1
        if not self._close_ns:
            self._close_ns = self._clock_ns() + self.traffic.close_after_ns
        if self._clock_ns() < self._close_ns:
            return self._close_ns
        self._facts.end_position = publication.position
        self._facts.ended_ns = self._clock_ns()
        self.is_done = True
        publication.close()
        return AT_ONCE

    def _offer(self, publication: Publication, start: int, length: int) -> int:
        """Offer one message. Returns the new position, or 0 if the offer must be repeated later."""
        at, message = start % self._payload.size, self._payload
        if at + length > self._payload.size:
            message, at = message_bytes(self._payload, start, length), 0
        turns = 0
        while True:
            position = publication.offer(message, at, length)
            self._refused.note(position)
            if position > 0:
                return position
            if position == result.BACK_PRESSURED:
                self._facts.back_pressure_count += 1
                return 0
            if position == result.NOT_CONNECTED and self._waits_for_readers:
                self._facts.not_connected_count += 1
                return 0
            if position != result.ADMIN_ACTION:
                count = self._facts.message_count
                raise refusal(count, length, position, publication.close_reason)
            self._facts.admin_action_count += 1
            turns += 1
            require_turned(turns, self._facts.message_count, length)

    def close(self, host: HostDir, error: str) -> None:
        """Write the publisher's files. `error` describes the failure of the publisher, or is
        empty.
        """
        files = host.publisher(self.traffic.id)
        files.offers.parent.mkdir(parents=True, exist_ok=True)
        offers = self._offers[: self._facts.message_count]
        offers.tofile(files.offers)
        self._times[: self._facts.message_count].tofile(files.times)
        if not self.is_done:
            self._facts.ended_ns = self._clock_ns()
            if self.publication is not None and not self.publication.is_closed:
                self._facts.end_position = self.publication.position
            elif len(offers):
                self._facts.end_position = int(offers["position"][-1])
        self._facts.back_pressured_ns = self._refused.of(result.BACK_PRESSURED)
        self._facts.not_connected_ns = self._refused.of(result.NOT_CONNECTED)
        self._facts.error = error or None
        self._facts.write(files.document)
