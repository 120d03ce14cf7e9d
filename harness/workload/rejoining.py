"""Reading a stream that is cut and goes on: image after image, from driver after driver.

    driver killed        |  new driver, new image     session ended    next session
    image 1 ----------X  |           image 2 -------------- EOS |  image 3 -------- EOS
    part 1, 0 to p1                  part 2, p2 to the end         part 3

What an image brought is a part: a stretch of one session from where the image joined to where it
was left. Parts of different sessions may come at the same time. The reading is over when as many
sessions have ended as the scenario has publications.
"""

import time
from dataclasses import asdict, dataclass, field
from typing import Protocol

from driver.base.errors import DriverError
from driver.client.aeron import Aeron
from driver.client.image import Image
from driver.client.subscription import Subscription
from harness.artifact.application import Part, SubscriberFacts
from harness.workload.options import Options
from harness.workload.progress import Progress, say
from harness.workload.stop import Stop
from harness.workload.tap import Tap

IDLE_S = 0.0001
RETRY_S = 0.05


class Reader(Protocol):
    """Who takes what an image brings."""

    def poll(self, image: Image) -> int:
        """Take what has become readable. Returns how many fragments."""


@dataclass
class _Images:
    """The images of one client, by a number that only its driver gives to no other."""

    seen: set[int] = field(default_factory=set)
    open: dict[int, tuple[Image, Part]] = field(default_factory=dict)


class Rejoining:
    """Reads all parts of one stream and keeps account of each."""

    def __init__(
        self,
        options: Options,
        application: Reader,
        tap: Tap,
        progress: Progress,
        facts: SubscriberFacts,
        stop: Stop,
    ) -> None:
        self._options = options
        self._application = application
        self._tap = tap
        self._progress = progress
        self._facts = facts
        self._stop = stop
        self._parts: list[Part] = []
        self._ended: set[int] = set()
        """Sessions whose end was read, by the application."""
        self._tapped: set[int] = set()
        """The same, by the tap."""
        self._was_ready = False

    def read(self, sessions: int) -> None:
        """Read until so many sessions have ended. Raises Stopped, and DriverError at first."""
        try:
            while not self._is_over(sessions):
                self._stop.check()
                try:
                    with Aeron(self._options.aeron_dir) as aeron:
                        self._read_with(aeron, sessions)
                except DriverError:
                    # A driver that was there once and is not: it is dead, or not yet alive again.
                    if not self._was_ready:
                        raise
                    time.sleep(RETRY_S)
        finally:
            self._progress.tell(last=True)

    def _is_over(self, sessions: int) -> bool:
        return len(self._ended) >= sessions and len(self._tapped) >= sessions

    def _read_with(self, aeron: Aeron, sessions: int) -> None:
        """Read until all is over, or this client is."""
        traffic = self._options.traffic
        own, tapped = (aeron.add_subscription(traffic.receive, traffic.stream_id) for _ in range(2))
        if not self._was_ready:
            self._was_ready = True
            say("ready")
        reading = _Images()
        try:
            while not self._is_over(sessions) and not aeron.is_closed:
                work_count = self._read_images(own, reading) + self._read_tapped(tapped)
                self._progress.tell()
                self._stop.check()
                if not work_count:
                    time.sleep(IDLE_S)
        finally:
            for image, part in reading.open.values():
                self._leave(image, part)

    def _read_images(self, subscription: Subscription, reading: _Images) -> int:
        for image in subscription.images:
            if image.correlation_id not in reading.seen:
                reading.seen.add(image.correlation_id)
                reading.open[image.correlation_id] = image, self._join(image)
        work_count = 0
        for image, part in list(reading.open.values()):
            work_count += self._application.poll(image)
            if image.is_end_of_stream or image.is_closed:
                self._leave(image, part)
                del reading.open[image.correlation_id]
        return work_count

    def _read_tapped(self, subscription: Subscription) -> int:
        work_count = 0
        for image in subscription.images:
            work_count += self._tap.poll(image)
            if image.is_end_of_stream:
                self._tapped.add(image.session_id)
        return work_count

    def _join(self, image: Image) -> Part:
        part = Part(
            session_id=image.session_id,
            join_position=image.join_position,
            end_position=image.join_position,
            eos_seen=False,
            joined_ns=time.time_ns(),
            left_ns=0,
        )
        self._parts.append(part)
        return part

    def _leave(self, image: Image, part: Part) -> None:
        """Note how far an image was read, and with it how far the stream was."""
        part.end_position = image.position
        part.eos_seen = image.is_end_of_stream
        part.left_ns = time.time_ns()
        if part.eos_seen:
            self._ended.add(part.session_id)
        facts = self._facts
        facts.parts = [asdict(each) for each in self._parts]
        facts.session_id, facts.join_position = part.session_id, part.join_position
        facts.end_position, facts.eos_seen = part.end_position, part.eos_seen
