"""A subscriber that the simulator runs step by step. It reads each stream twice: as an application,
and as a recorder of frames.

    driver --> log of the image --> subscription 1 --> application --> messages, index, times
                                --> subscription 2 --> tap ----------> frames.bin

It writes the same files as a workload's subscriber, with simulated times. A stream that continues
after an interruption (`rejoins`) is read in parts, by one client after another if needed.
"""

from __future__ import annotations

from collections.abc import Callable

from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.subscription import Subscription
from windtunnel.harness.artifact.run_dir import HostDir
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.simulator.applications.subscriber_output import SubscriberOutput
from windtunnel.harness.simulator.network.in_flight import NEVER
from windtunnel.harness.simulator.world.virtual_time import AT_ONCE
from windtunnel.harness.workload.rejoining import Parts
from windtunnel.harness.workload.stop import SubjectError
from windtunnel.harness.workload.subscriber import may_close


class Subscriber:
    """Reads one stream to its end."""

    role = "subscriber"

    def __init__(
        self,
        traffic: TrafficCase,
        connect: Callable[[], Aeron | None],
        host: HostDir,
        clock_ns: Callable[[], int],
        *,
        sessions: int,
        flips_byte: bool,
    ) -> None:
        """Create a subscriber that connects on its first step.

        `connect` creates a client, or returns None if no driver is running. `sessions` is the
        number of sessions of a stream that rejoins. `flips_byte` corrupts the first message.
        """
        self.traffic = traffic
        self._connect = connect
        self._clock_ns = clock_ns
        self._output = SubscriberOutput(traffic, host, clock_ns, flips_byte=flips_byte)
        self._application, self._tap = self._output.application, self._output.tap
        self._facts, self._progress = self._output.facts, self._output.progress
        self._parts: Parts | None = None
        if traffic.rejoins:
            self._parts = Parts(self._application, self._tap, self._facts, sessions, clock_ns)
        self._client: Aeron | None = None
        self._registrations: list[int] = []
        self.subscriptions: list[Subscription] = []
        self.images: list[Image] = []
        self.is_done = False
        self._state = self._current_state

    @property
    def count_bytes(self) -> int:
        """Return the number of bytes in the complete messages that were delivered."""
        return self._progress.count_bytes

    @property
    def has_joined(self) -> bool:
        """Return whether the application has had an image."""
        return bool(self.images) if self._parts is None else self._parts.have_begun

    @property
    def is_subscribed(self) -> bool:
        """Return whether the driver has acknowledged both subscriptions: the application's and the
        frame recorder's.
        """
        if self._client is None and not self._request():
            return False
        assert self._client is not None
        if len(self.subscriptions) < len(self._registrations):
            found = self._client.get_subscription(self._registrations[len(self.subscriptions)])
            if found is not None:
                self.subscriptions.append(found)
                if len(self.subscriptions) == 1:
                    self._add_sources(found)
        return len(self.subscriptions) == len(self._registrations)

    def _request(self) -> bool:
        """Request the subscriptions of the application and the frame recorder. Returns False if no
        driver is running.
        """
        self._client = self._connect()
        if self._client is None:
            return False
        traffic = self.traffic
        self._registrations = [
            self._client.async_add_subscription(traffic.receive, traffic.stream_id)
            for _ in range(2)
        ]
        return True

    def _add_sources(self, subscription: Subscription) -> None:
        # Both subscriptions share one endpoint, to which the sources are added once.
        for host, source in self.traffic.sources:
            if host == self.traffic.to_host:
                subscription.async_add_destination(source)

    def step(self) -> int:
        """Read everything available, unless the application's pace sets a limit.

        Returns the time of the next step that is needed even if nothing else happens: AT_ONCE if
        anything has changed since the last step, or NEVER.
        """
        if self.is_done:
            return NEVER
        self._advance()
        before, self._state = self._state, self._current_state
        if self._state != before:
            return AT_ONCE
        wait_ns = self._application.wait_ns()
        return self._clock_ns() + wait_ns if wait_ns else NEVER

    @property
    def _current_state(self) -> tuple[object, ...]:
        """Return what a step can change, to find out whether one has changed anything."""
        parts = self._parts
        return (
            self._client,
            len(self.subscriptions),
            len(self.images),
            self._tap.frame_count,
            self._progress.count_bytes,
            parts is not None and parts.have_begun,
            self.is_done,
        )

    def _advance(self) -> None:
        if self._parts is not None and self._client is not None and self._client.is_closed:
            self._parts.leave()
            self._client = None
            self.subscriptions.clear()
        if not self.is_subscribed:
            return
        if self._parts is not None:
            self._read_parts(self._parts)
        elif not self.images:
            self._find_images()
        else:
            self._read()

    def _read_parts(self, parts: Parts) -> None:
        own, tapped = self.subscriptions
        while parts.read(own, tapped):
            pass
        if parts.is_over:
            self.is_done = True
            self._facts.ended_ns = self._clock_ns()

    def _find_images(self) -> None:
        found = [each.images[0] for each in self.subscriptions if each.images]
        if len(found) == len(self.subscriptions):
            self.images = found
            self._facts.session_id = found[0].session_id
            self._facts.join_position = found[0].join_position
            self._facts.started_ns = self._clock_ns()

    def _read(self) -> None:
        own, tapped = self.images
        while self._application.poll(own) + self._tap.poll(tapped):
            pass
        if own.is_end_of_stream and tapped.is_end_of_stream:
            self.is_done = True
        elif own.is_closed or tapped.is_closed:
            if not may_close(self.traffic):
                raise SubjectError(
                    f"the image was closed at position {own.position} (position of the frame "
                    f"recorder: {tapped.position}), before the end of the stream"
                )
            self.is_done = True
        if self.is_done:
            self._facts.ended_ns = self._clock_ns()

    def close(self, error: str) -> None:
        """Close the subscriptions and write the files. `error` describes the failure of the
        subscriber, or is empty.
        """
        for each in self.subscriptions:
            each.close()
        facts = self._facts
        if self._parts is not None:
            self._parts.leave()
        elif self.images:
            facts.end_position = self.images[0].position
            facts.eos_seen = all(each.is_end_of_stream for each in self.images)
        self._output.close(error)
