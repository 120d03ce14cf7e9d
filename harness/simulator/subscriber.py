"""A subscriber that is stepped: the workload's own application and tap, polled in turns.

    driver --> log of the image --> subscription 1 --> application --> messages.bin, index.bin
                                --> subscription 2 --> tap ----------> frames.bin

It leaves the files that a workload's subscriber leaves, with simulated times.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from driver.client.aeron import Aeron
from driver.client.image import Image
from driver.client.subscription import Subscription
from harness.artifact.application import SubscriberFacts
from harness.artifact.run_dir import HostDir
from harness.scenario.case import TrafficCase
from harness.workload.progress import Progress
from harness.workload.stop import SubjectError
from harness.workload.subscriber import BUFFER_BYTES, Application
from harness.workload.tap import Tap


class Subscriber:
    """Reads one traffic's stream to its end."""

    def __init__(
        self,
        traffic: TrafficCase,
        client: Aeron,
        host: HostDir,
        clock_ns: Callable[[], int],
        *,
        flips_byte: bool,
    ) -> None:
        """`flips_byte` damages the first message."""
        self.traffic = traffic
        self.error = ""
        """What went wrong; empty for a subscriber that is well."""
        self._client = client
        self._clock_ns = clock_ns
        self._files = host.subscriber(traffic.id)
        self._files.document.parent.mkdir(parents=True, exist_ok=True)
        self._closing = ExitStack()
        messages, index, frames = (
            self._closing.enter_context(path.open("wb", buffering=BUFFER_BYTES))
            for path in (self._files.messages, self._files.index, self._files.frames)
        )
        self._progress = Progress(traffic.total_bytes)
        self._application = Application(
            messages, index, self._progress, traffic.consume, clock_ns, flip_byte=flips_byte
        )
        self._tap = Tap(frames, clock_ns)
        self._registrations = [
            client.async_add_subscription(traffic.receive, traffic.stream_id) for _ in range(2)
        ]
        self.subscriptions: list[Subscription] = []
        self.images: list[Image] = []
        self._started_ns = self._ended_ns = clock_ns()
        self.is_done = False

    @property
    def read_bytes(self) -> int:
        """Bytes of whole messages that were delivered."""
        return self._progress.count_bytes

    @property
    def is_subscribed(self) -> bool:
        """Whether the driver knows of both subscriptions."""
        if len(self.subscriptions) < len(self._registrations):
            wanted = self._registrations[len(self.subscriptions)]
            found = self._client.get_subscription(wanted)
            if found is not None:
                self.subscriptions.append(found)
        return len(self.subscriptions) == len(self._registrations)

    def step(self) -> None:
        """Read all that there is, as far as the application's pace allows."""
        if self.is_done or not self.is_subscribed:
            return
        if not self.images:
            self._find_images()
            return
        own, tapped = self.images
        while self._application.poll(own) + self._tap.poll(tapped):
            pass
        if own.is_end_of_stream and tapped.is_end_of_stream:
            self._ended_ns = self._clock_ns()
            self.is_done = True
        elif own.is_closed or tapped.is_closed:
            raise SubjectError(
                f"the image went away at position {own.position} (tap: {tapped.position}), "
                "before the end of the stream"
            )

    def _find_images(self) -> None:
        found = [each.images[0] for each in self.subscriptions if each.images]
        if len(found) == len(self.subscriptions):
            self.images = found
            self._started_ns = self._clock_ns()

    def close(self) -> None:
        """Leave the stream, and the subscriber's files."""
        for each in self.subscriptions:
            each.close()
        self._closing.close()
        own = self.images[0] if self.images else None
        SubscriberFacts(
            session_id=own.session_id if own else 0,
            stream_id=self.traffic.stream_id,
            join_position=own.join_position if own else 0,
            end_position=own.position if own else 0,
            eos_seen=bool(self.images) and all(each.is_end_of_stream for each in self.images),
            message_count=self._application.message_count,
            message_bytes=self._progress.count_bytes,
            started_ns=self._started_ns,
            ended_ns=self._ended_ns if self.is_done else self._clock_ns(),
            error=self.error or None,
        ).write(self._files.document)
