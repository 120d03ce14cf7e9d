"""Publishes the planned messages in order, each once, at full speed or at a given pace.

A message is offered directly from the payload file's bytes. Only a message that wraps around the
file's end is copied. On back pressure the publisher sleeps briefly, because drivers, relay and
subscribers share the same few cores.
"""

import time

import numpy as np
from numpy.typing import NDArray

from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.harness.artifact.host.message_times import OFFER_TIME
from windtunnel.harness.artifact.host.offer import OFFER
from windtunnel.harness.artifact.run.plan import MessagePlan, message_bytes, plan
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.resolved.cut import may_disconnect
from windtunnel.harness.scenario.schema.pace import UNLIMITED, PaceCase
from windtunnel.harness.workload.options import SKIP_MESSAGE, Options
from windtunnel.harness.workload.pacer import Pacer
from windtunnel.harness.workload.progress import Progress
from windtunnel.harness.workload.publisher_facts import (
    begin_facts,
    note_stream,
    refusal,
    require_turned,
)
from windtunnel.harness.workload.refused_time import RefusedTime
from windtunnel.harness.workload.start import Start
from windtunnel.harness.workload.stop import (
    Stop,
    SubjectError,
    error_text,
    timeouts_as_gave_up,
)

IDLE_S = 0.0001
WAIT_S = 0.01
"""Longest sleep between two messages, after which the publisher checks whether it was stopped."""
MESSAGES_BETWEEN_LOOKS = 64
"""Number of messages between checks of the clock and of signals."""

NS_PER_S = 1_000_000_000


class Publisher:
    """Offers the messages in one message plan, and records each accepted offer."""

    def __init__(
        self,
        message_plan: MessagePlan,
        payload: NDArray[np.uint8],
        skip: int,
        stop: Stop,
        pace: PaceCase = UNLIMITED,
        *,
        waits_for_readers: bool = False,
    ) -> None:
        self._plan = message_plan
        self._payload = payload
        self._skip = skip
        """Index of the message that is skipped, or -1 if no message is skipped."""
        self._stop = stop
        self._pacer = Pacer(pace)
        self._waits_for_readers = waits_for_readers
        self._offers = np.zeros(message_plan.count, dtype=OFFER)
        self._times = np.zeros(message_plan.count, dtype=OFFER_TIME)
        self.progress = Progress(message_plan.total_bytes)
        self.accepted_count = 0
        self.back_pressure_count = 0
        self.admin_action_count = 0
        self.not_connected_count = 0
        self.refused = RefusedTime(time.monotonic_ns)

    @property
    def offers(self) -> NDArray[np.void]:
        """One OFFER record for each accepted message."""
        return self._offers[: self.accepted_count]

    @property
    def times(self) -> NDArray[np.void]:
        """One OFFER_TIME record for each accepted message."""
        return self._times[: self.accepted_count]

    def send(self, publication: Publication) -> None:
        """Offer all messages in the plan. Raises SubjectError if an offer fails, or Stopped if a
        stop signal arrives.
        """
        messages = zip(self._plan.starts.tolist(), self._plan.lengths.tolist(), strict=True)
        for index, (start, length) in enumerate(messages):
            if index % MESSAGES_BETWEEN_LOOKS == 0:
                self._stop.check()
                self.progress.report()
            if index == self._skip:
                continue
            if not self._pacer.is_unlimited:
                self._rest()
            offered_ns = time.time_ns()
            position = self._offer(publication, start, length)
            self._offers[self.accepted_count] = (index, length, 0, position)
            self._times[self.accepted_count] = offered_ns
            self.accepted_count += 1
            self.progress.add(length)
            if not self._pacer.is_unlimited:
                self._pacer.add(length, time.monotonic_ns())
        self.progress.report(last=True)

    def _rest(self) -> None:
        """Wait until the next message is due, according to the pace."""
        while wait_ns := self._pacer.wait_ns(time.monotonic_ns()):
            self._stop.check()
            self.progress.report()
            time.sleep(min(wait_ns / NS_PER_S, WAIT_S))

    def stay_open(self, duration_ns: int) -> None:
        """Keep the publication open for a given time."""
        end_ns = time.monotonic_ns() + duration_ns
        while (left_ns := end_ns - time.monotonic_ns()) > 0:
            self._stop.check()
            time.sleep(min(left_ns / NS_PER_S, WAIT_S))

    def _offer(self, publication: Publication, start: int, length: int) -> int:
        at = start % self._payload.size
        if at + length <= self._payload.size:
            message = self._payload
        else:
            message, at = message_bytes(self._payload, start, length), 0
        turns = 0
        while True:
            position = publication.offer(message, at, length)
            self.refused.note(position)
            if position > 0:
                return position
            if position == result.BACK_PRESSURED:
                self.back_pressure_count += 1
                self._stop.check()
                self.progress.report()
                time.sleep(IDLE_S)
            elif position == result.ADMIN_ACTION:
                # ADMIN_ACTION requires an immediate retry.
                self.admin_action_count += 1
                turns += 1
                require_turned(turns, self.accepted_count, length)
                self._stop.check()
            elif position == result.NOT_CONNECTED and self._waits_for_readers:
                self.not_connected_count += 1
                self._stop.check()
                self.progress.report()
                time.sleep(IDLE_S)
            else:
                raise refusal(self.accepted_count, length, position, publication.close_reason)


def run(options: Options, stop: Stop) -> None:
    """Publish all planned messages, and write the publisher's files even on failure."""
    traffic, files = options.traffic, options.files.publisher(options.traffic.id)
    facts = begin_facts(traffic, time.time_ns())
    message_plan = plan(
        options.case.seed,
        traffic.id,
        traffic.total_bytes,
        traffic.longest_bytes,
        traffic.shortest_bytes,
    )
    start = Start() if len(traffic.publishers) > 1 or traffic.starts_with else None
    payload = np.fromfile(options.case.payload.path, dtype=np.uint8)
    skip = message_plan.count // 2 if options.sabotage == SKIP_MESSAGE else -1
    waits = traffic.rejoins or may_disconnect(options.case, traffic)
    publisher = Publisher(message_plan, payload, skip, stop, traffic.pace, waits_for_readers=waits)
    try:
        with Aeron(options.aeron_dir) as aeron, timeouts_as_gave_up(aeron):
            publication = _open(aeron, traffic)
            for destination in traffic.destinations:
                publication.add_destination(destination)
            note_stream(facts, publication)
            # Progress counts from here, and includes the time to connect.
            publisher.progress.report()
            _wait_until_connected(publication, stop)
            if start is not None:
                start.wait(stop)
            facts.started_ns = time.time_ns()
            try:
                publisher.send(publication)
                publisher.stay_open(traffic.close_after_ns)
            finally:
                facts.end_position = _reached(publication, publisher)
            publication.close()
    except BaseException as error:
        facts.error = error_text(error)
        raise
    finally:
        facts.ended_ns = time.time_ns()
        facts.message_count = publisher.accepted_count
        facts.back_pressure_count = publisher.back_pressure_count
        facts.admin_action_count = publisher.admin_action_count
        facts.not_connected_count = publisher.not_connected_count
        facts.back_pressured_ns = publisher.refused.of(result.BACK_PRESSURED)
        facts.not_connected_ns = publisher.refused.of(result.NOT_CONNECTED)
        files.offers.parent.mkdir(parents=True, exist_ok=True)
        publisher.offers.tofile(files.offers)
        publisher.times.tofile(files.times)
        facts.write(files.document)


def _open(aeron: Aeron, traffic: TrafficCase) -> Publication:
    if traffic.publication == "exclusive":
        return aeron.add_exclusive_publication(traffic.channel, traffic.stream_id)
    return aeron.add_publication(traffic.channel, traffic.stream_id)


def _wait_until_connected(publication: Publication, stop: Stop) -> None:
    while not publication.is_connected:
        stop.check()
        if publication.is_closed:
            raise SubjectError(
                f"the publication was closed before it was connected: {publication.close_reason}"
            )
        time.sleep(IDLE_S)


def _reached(publication: Publication, publisher: Publisher) -> int:
    """Return the position after the last accepted message, even if the publication is closed."""
    if not publication.is_closed:
        return publication.position
    return int(publisher.offers["position"][-1]) if publisher.accepted_count else 0
