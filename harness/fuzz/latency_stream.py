"""A stream that measures latency: each message contains the time at which it was offered."""

import struct
import time
from collections.abc import Callable
from functools import partial

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client import Aeron
from windtunnel.driver.client.image.header import Header
from windtunnel.harness.fuzz.checked_streams import LOOPBACK
from windtunnel.harness.fuzz.finding import Violation

MESSAGE_INTERVAL_S = 0.001
JOINS, JOIN_PATIENCE_S = 5, 20.0
STREAM_ID, SESSION_ID, TERM_ID = 5_000, 4_000, 100
_STAMP = struct.Struct("<q")


class LatencyStream:
    """A publication and a subscription of the same stream."""

    def __init__(self, aeron: Aeron, port: int) -> None:
        channel = f"aeron:udp?endpoint={LOOPBACK}:{port}"
        self._aeron, self._channel = aeron, f"{channel}|term-length=64k"
        place = f"|term-length=64k|session-id={SESSION_ID}"
        place += f"|init-term-id={TERM_ID}|term-id={TERM_ID}|term-offset=0"
        self._subscription = aeron.add_subscription(channel, STREAM_ID)
        self._publication = aeron.add_exclusive_publication(channel + place, STREAM_ID)
        self._samples: list[int] = []
        deadline_s = time.monotonic() + JOIN_PATIENCE_S
        while not self._publication.is_connected or not self._subscription.images:
            if time.monotonic() > deadline_s:
                raise Violation(
                    f"the stream that measures latency did not connect within {JOIN_PATIENCE_S:g} s"
                )
            time.sleep(0.001)

    def _on_message(self, payload: memoryview, header: Header) -> None:
        # A forged session may have got an image of this stream, and sent anything.
        if header.session_id == SESSION_ID:
            (sent_ns,) = _STAMP.unpack_from(payload)
            self._samples.append(time.monotonic_ns() - sent_ns)

    def slowest_session(self) -> float:
        """Add publications to the stream, one at a time. Returns the longest time in seconds until
        the subscription had the image of one. Raises Violation if the driver refuses one.
        """
        slowest_s = 0.0
        for _ in range(JOINS):
            began_s = time.monotonic()
            try:
                publication = self._aeron.add_exclusive_publication(self._channel, STREAM_ID)
            except DriverError as error:
                text = f"the driver refused a new publication of the stream: {error}"
                raise Violation(text) from error
            with publication:
                find = partial(self._subscription.image_by_session_id, publication.session_id)
                wait(began_s, find)
            slowest_s = max(slowest_s, time.monotonic() - began_s)
        return slowest_s

    def run(self, duration_s: float) -> list[int]:
        """Offer a message every millisecond, and return the latency of each message in nanoseconds.
        Raises Violation if one does not arrive.

        A message that finds no space is offered again, and its latency includes that time.
        """
        self._samples = []
        now_s = time.monotonic()
        end_s, next_s = now_s + duration_s, now_s
        offered, stamp_ns = 0, 0
        while now_s < end_s or len(self._samples) < offered:
            if next_s <= now_s < end_s:
                stamp_ns = stamp_ns or time.monotonic_ns()
                if self._publication.offer(_STAMP.pack(stamp_ns)) > 0:
                    offered, stamp_ns = offered + 1, 0
                    next_s = max(next_s + MESSAGE_INTERVAL_S, now_s)
            self._subscription.poll(self._on_message, 10)
            now_s = time.monotonic()
            if now_s > end_s + JOIN_PATIENCE_S:
                missing = offered - len(self._samples)
                raise Violation(
                    f"{missing} of {offered} messages did not arrive within {JOIN_PATIENCE_S:g} s"
                )
        if not offered:
            raise Violation(f"no message found space in the publication within {duration_s:g} s")
        return self._samples


def percentile(samples: list[int], share: float) -> float:
    """Return a percentile of the samples: the value at index `share` x count in ascending order."""
    ordered = sorted(samples)
    return float(ordered[min(len(ordered) - 1, int(share * len(ordered)))])


def wait(began_s: float, condition: Callable[[], object]) -> None:
    """Wait until a condition is met, or until a time limit after `began_s`."""
    while not condition() and time.monotonic() - began_s < JOIN_PATIENCE_S:
        time.sleep(0.001)
