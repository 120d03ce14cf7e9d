"""A publisher that is stepped: as much of its plan as pace and stream allow, then the others' turn.

It leaves the files that a workload's publisher leaves, with simulated times. Raises SubjectError
where a stream refuses what it must take.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from driver.client.aeron import Aeron
from driver.client.publication import Publication
from driver.logbuffer import publication_result as result
from harness.artifact.application import PublisherFacts
from harness.artifact.offer import OFFER
from harness.artifact.plan import message_bytes, plan
from harness.artifact.run_dir import HostDir
from harness.scenario.case import TrafficCase
from harness.workload.pacer import Pacer
from harness.workload.stop import SubjectError


class Publisher:
    """Sends the messages of one traffic's plan."""

    def __init__(
        self,
        traffic: TrafficCase,
        seed: int,
        payload: NDArray[np.uint8],
        client: Aeron,
        clock_ns: Callable[[], int],
        *,
        skips: bool,
    ) -> None:
        """`skips` leaves out the message in the middle."""
        self.traffic = traffic
        self.error = ""
        """What went wrong; empty for a publisher that is well."""
        self._clock_ns = clock_ns
        self._client = client
        self._payload = payload
        self._plan = plan(
            seed,
            traffic.id,
            traffic.total_bytes,
            traffic.longest_bytes,
            traffic.shortest_bytes,
        )
        self._skip = self._plan.count // 2 if skips else -1
        self._offers = np.zeros(self._plan.count, dtype=OFFER)
        self._next = self._accepted = 0
        self._pacer = Pacer(traffic.pace)
        self._close_ns = 0
        """When it closes; 0 as long as there is something to send."""
        self._back_pressures = self._admin_actions = 0
        self.sent_bytes = 0
        add = client.async_add_publication
        if traffic.publication == "exclusive":
            add = client.async_add_exclusive_publication
        self._registration = add(traffic.channel, traffic.stream_id)
        self.publication: Publication | None = None
        self._started_ns = self._ended_ns = clock_ns()
        self._end_position = traffic.initial_position
        self._facts: dict[str, int] = {}
        self.is_done = False

    def step(self) -> None:
        """Go on as far as possible without waiting."""
        if self.is_done:
            return
        if self.publication is None:
            self._find_publication()
        elif not self._facts and self.publication.is_connected:
            self._note_stream(self.publication)
        elif self._facts:
            self._send(self.publication)

    def _find_publication(self) -> None:
        if self.traffic.publication == "exclusive":
            self.publication = self._client.get_exclusive_publication(self._registration)
        else:
            self.publication = self._client.get_publication(self._registration)

    def _note_stream(self, publication: Publication) -> None:
        self._started_ns = self._clock_ns()
        self._facts = {
            "session_id": publication.session_id,
            "initial_term_id": publication.initial_term_id,
            "term_length": publication.term_length,
            "mtu": publication.mtu_length,
            "start_position": publication.position,
        }

    def _send(self, publication: Publication) -> None:
        starts, lengths = self._plan.starts, self._plan.lengths
        while self._next < self._plan.count:
            if self._pacer.wait_ns(self._clock_ns()):
                return
            start, length = int(starts[self._next]), int(lengths[self._next])
            if self._next != self._skip:
                position = self._offer(publication, start, length)
                if position <= 0:
                    return
                self._offers[self._accepted] = (self._next, length, 0, position)
                self._accepted += 1
                self.sent_bytes += length
                self._pacer.add(length, self._clock_ns())
            self._next += 1
        if not self._close_ns:
            self._close_ns = self._clock_ns() + self.traffic.close_after_ns
        if self._clock_ns() < self._close_ns:
            return
        self._end_position = publication.position
        self._ended_ns = self._clock_ns()
        self.is_done = True
        publication.close()

    def _offer(self, publication: Publication, start: int, length: int) -> int:
        """Returns a position, or 0 when the stream pushes back."""
        at, message = start % self._payload.size, self._payload
        if at + length > self._payload.size:
            message, at = message_bytes(self._payload, start, length), 0
        while True:
            position = publication.offer(message, at, length)
            if position > 0:
                return position
            if position == result.BACK_PRESSURED:
                self._back_pressures += 1
                return 0
            if position != result.ADMIN_ACTION:
                why = publication.close_reason
                raise SubjectError(
                    f"message {self._accepted} of {length} bytes: expected a position, found code "
                    f"{position}{f': {why}' if why else ''}"
                )
            self._admin_actions += 1

    def write(self, host: HostDir) -> None:
        """Leave the publisher's files."""
        files = host.publisher(self.traffic.id)
        files.offers.parent.mkdir(parents=True, exist_ok=True)
        self._offers[: self._accepted].tofile(files.offers)
        traffic, facts = self.traffic, self._facts
        if self.publication is not None and not self.is_done and not self.publication.is_closed:
            self._end_position = self.publication.position
        PublisherFacts(
            session_id=facts.get("session_id", 0),
            stream_id=traffic.stream_id,
            initial_term_id=facts.get("initial_term_id", traffic.initial_term_id or 0),
            term_length=facts.get("term_length", traffic.term_length),
            mtu=facts.get("mtu", traffic.mtu),
            start_position=facts.get("start_position", traffic.initial_position),
            end_position=self._end_position,
            message_count=self._accepted,
            back_pressure_count=self._back_pressures,
            admin_action_count=self._admin_actions,
            started_ns=self._started_ns,
            ended_ns=self._ended_ns if self.is_done else self._clock_ns(),
            error=self.error or None,
        ).write(files.document)
