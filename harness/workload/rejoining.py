"""Reads a stream across interruptions: image after image, from one driver after another.

    driver killed        |  new driver, new image     session ended    next session
    image 1 ----------X  |           image 2 -------------- EOS |  image 3 -------- EOS
    part 1, 0 to p1                  part 2, p2 to the end         part 3

A part is the range of one session that was read from one image, from where the image joined to
where it was closed. Parts of different sessions may overlap in time. Reading ends when as many
sessions have ended as the scenario has publications.
"""

import time
from collections.abc import Callable
from typing import Protocol

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.subscription import Subscription
from windtunnel.harness.artifact.host.application import Part, SubscriberFacts
from windtunnel.harness.workload.options import Options
from windtunnel.harness.workload.progress import JOINED, Progress, print_line
from windtunnel.harness.workload.stop import Stop
from windtunnel.harness.workload.tap import Tap

IDLE_S = 0.0001
RETRY_S = 0.05


class Reader(Protocol):
    """Reads the available fragments of an image."""

    def poll(self, image: Image) -> int:
        """Read the available fragments. Returns the number of fragments."""


class ImageReader(Reader, Protocol):
    """A reader that is also notified when an image delivers no more fragments."""

    def leave(self, image: Image) -> int:
        """Drop an incomplete message. Returns the end position of the last whole message, or -1 if
        there is no whole message.
        """


class Parts:
    """Reads one stream image by image, from any number of clients, and records the range read from
    each image.
    """

    def __init__(
        self,
        application: ImageReader,
        tap: Tap,
        facts: SubscriberFacts,
        sessions: int,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Create a reader that is complete once `sessions` sessions have ended."""
        self._application = application
        self._tap = tap
        self._facts = facts
        self._sessions = sessions
        self._clock_ns = clock_ns
        self._parts: list[Part] = []
        self._ended: set[int] = set()
        """Sessions that the application has read to their end."""
        self._tapped: set[int] = set()
        """Sessions that the tap (the frame recorder) has read to their end."""
        self._seen: set[int] = set()
        """Correlation ids of the current client's images. They are unique within a driver."""
        self._open: dict[int, tuple[Image, Part]] = {}

    @property
    def is_over(self) -> bool:
        """Whether the application and the frame recorder have both read the required number of
        sessions to the end.
        """
        return len(self._ended) >= self._sessions and len(self._tapped) >= self._sessions

    @property
    def have_begun(self) -> bool:
        """Whether the application has had an image."""
        return bool(self._parts)

    def read(self, own: Subscription, tapped: Subscription) -> int:
        """Read the available data, for the application and for the frame recorder. Returns the
        amount of work done.
        """
        return self._read_images(own) + self._read_tapped(tapped)

    def leave(self) -> None:
        """Record the end of each image of the current client, which was closed or is no longer
        needed.
        """
        for image, part in self._open.values():
            self._leave(image, part)
        self._open.clear()
        self._seen.clear()

    def _read_images(self, subscription: Subscription) -> int:
        for image in subscription.images:
            if image.correlation_id not in self._seen:
                self._seen.add(image.correlation_id)
                self._open[image.correlation_id] = image, self._join(image)
        work_count = 0
        for image, part in list(self._open.values()):
            work_count += self._application.poll(image)
            if image.is_end_of_stream or image.is_closed:
                self._leave(image, part)
                del self._open[image.correlation_id]
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
            joined_ns=self._clock_ns(),
            left_ns=0,
        )
        self._parts.append(part)
        return part

    def _leave(self, image: Image, part: Part) -> None:
        """Record how far an image was read, and whether its stream has ended."""
        # If an image closes during a poll, its position excludes what that poll delivered.
        part.end_position = max(image.position, self._application.leave(image))
        part.eos_seen = image.is_end_of_stream
        part.left_ns = self._clock_ns()
        if part.eos_seen:
            self._ended.add(part.session_id)
        facts = self._facts
        facts.parts = self._parts
        facts.session_id, facts.join_position = part.session_id, part.join_position
        facts.end_position, facts.eos_seen = part.end_position, part.eos_seen


class Rejoining:
    """Reads one stream with a sequence of clients until it has been read completely."""

    def __init__(self, options: Options, parts: Parts, progress: Progress, stop: Stop) -> None:
        self._options = options
        self._parts = parts
        self._progress = progress
        self._stop = stop
        self._was_ready = self._has_joined = False

    def read(self) -> None:
        """Read to the stream's end. Raises Stopped if a stop signal arrives, or DriverError if the
        first connection fails.
        """
        try:
            while not self._parts.is_over:
                self._stop.check()
                try:
                    with Aeron(self._options.aeron_dir) as aeron:
                        self._read_with(aeron)
                except DriverError:
                    # A driver that responded before and does not now is dead, or not running again
                    # yet.
                    if not self._was_ready:
                        raise
                    time.sleep(RETRY_S)
        finally:
            self._progress.report(last=True)

    def _read_with(self, aeron: Aeron) -> None:
        """Read until all sessions have ended or this client is closed."""
        traffic = self._options.traffic
        own, tapped = (aeron.add_subscription(traffic.receive, traffic.stream_id) for _ in range(2))
        if not self._was_ready:
            self._was_ready = True
            print_line("ready")
        try:
            while not self._parts.is_over and not aeron.is_closed:
                work_count = self._parts.read(own, tapped)
                if self._parts.have_begun and not self._has_joined:
                    self._has_joined = True
                    print_line(JOINED)
                self._progress.report()
                self._stop.check()
                if not work_count:
                    time.sleep(IDLE_S)
        finally:
            self._parts.leave()
