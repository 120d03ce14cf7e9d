"""Streams with all kinds of channels, and subscribers that verify every message.

A message contains its number at byte 16, followed by bytes from a block that all streams share. The
first 16 bytes are reserved for timestamps. A subscriber verifies only the session of its own
publication, and ignores other sessions with the same stream id.
"""

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from windtunnel.driver.client import FragmentAssembler
from windtunnel.driver.client.aeron import Aeron

NUMBER = struct.Struct("<Q")
STAMPS = 16
BLOCK = random.Random(4711).randbytes(1 << 16)
ENDPOINT = "aeron:udp?endpoint={{here}}:{}"
STAMPING = "media-rcv-ts-offset=reserved|channel-rcv-ts-offset=0"


@dataclass(frozen=True)
class Kind:
    """One kind of stream, defined by its channels. In a channel, {a} to {c} stand for the stream's
    ports, and {here} for the host's address.
    """

    name: str
    publication: str
    subscription: str
    destinations: tuple[str, ...] = ()
    """Destinations to add to the publication."""
    sources: tuple[str, ...] = ()
    """Destinations to add to the subscription."""
    is_exclusive: bool = True
    is_reliable: bool = True
    is_answered: bool = False
    """Whether the subscriber answers on a response channel."""


HERE, THERE = ENDPOINT.format("{a}"), ENDPOINT.format("{b}")
SMALL = "|term-length=64k"
NARROW = "|rcv-wnd=16k"
"""A small receiver window for channels whose destinations an attack can displace. If the data lost
in this way and the padding after it exceed half a term, the receiver treats the next heartbeats as
over-runs, in Aeron too, and never requests the lost data.
"""
CONTROL = "control={here}:{a}|control-mode="
KINDS = (
    Kind("unicast", HERE + SMALL, HERE),
    Kind("shared", HERE + SMALL, HERE, is_exclusive=False),
    Kind("unreliable", HERE + SMALL, HERE + "|reliable=false", is_reliable=False),
    Kind("cubic", HERE + SMALL, HERE + "|cc=cubic"),
    Kind("group", HERE + SMALL, HERE + "|group=true"),
    Kind("no-rejoin", HERE + SMALL, HERE + "|rejoin=false|tether=false"),
    Kind(
        "dynamic", f"aeron:udp?{CONTROL}dynamic|fc=max{SMALL}",
        THERE + "|control={here}:{a}|group=true" + NARROW,
    ),
    Kind(
        "manual-min", f"aeron:udp?{CONTROL}manual|fc=min,g:/1{SMALL}", THERE, destinations=(THERE,),
    ),
    Kind(
        "tagged", f"aeron:udp?{CONTROL}dynamic|fc=tagged,g:7/1{SMALL}",
        THERE + "|control={here}:{a}|gtag=7" + NARROW,
    ),
    Kind(
        "two-sources", f"aeron:udp?{CONTROL}manual|fc=max{SMALL}",
        "aeron:udp?control-mode=manual", destinations=(THERE, ENDPOINT.format("{c}")),
        sources=(THERE, ENDPOINT.format("{c}")),
    ),
    Kind(
        "stamped", f"{HERE}|{STAMPING}|channel-snd-ts-offset=8{SMALL}",
        f"{HERE}|{STAMPING}|channel-snd-ts-offset=8",
    ),
    Kind("answered", HERE + SMALL, HERE, is_answered=True),
    Kind(
        "spied", "aeron:udp?endpoint={here}:{a}|ssc=true" + SMALL,
        "aeron-spy:aeron:udp?endpoint={here}:{a}",
    ),
    Kind("ipc", "aeron:ipc?term-length=64k", "aeron:ipc"),
)  # fmt: skip


def content_of(number: int) -> bytes:
    """Return the contents of message `number`, which are the same for every stream."""
    length = 40 + number * 7919 % 1300 if number % 16 else 3000 + number * 31 % 2000
    start = number * 37 % 50_000
    return bytes(STAMPS) + NUMBER.pack(number) + BLOCK[start : start + length - STAMPS - 8]


class Stream:
    """A publication and its only subscriber. `next_number` messages have been offered so far."""

    def __init__(
        self,
        aeron: Aeron,
        kind: Kind,
        ports: dict[str, int | str],
        stream_id: int,
        parameters: str = "",
    ) -> None:
        self.kind, self.stream_id = kind, stream_id
        self.next_number = self.expected = 0
        self.faults: list[str] = []
        self._handler = FragmentAssembler(self._on_message)
        self.subscription = aeron.add_subscription(kind.subscription.format(**ports), stream_id)
        for source in kind.sources:
            self.subscription.add_destination(source.format(**ports))
        add: Callable[[str, int], Any] = (
            aeron.add_exclusive_publication if kind.is_exclusive else aeron.add_publication
        )
        channel = kind.publication.format(**ports) + parameters
        self.answers: Any = None
        if kind.is_answered:
            answer_channel = f"aeron:udp?control-mode=response|control={ports['here']}:{ports['b']}"
            self.answers = aeron.add_subscription(answer_channel, stream_id + 1)
            channel += f"|response-correlation-id={self.answers.registration_id}"
        self.publication = add(channel, stream_id)
        self.answering: Any = None
        for destination in kind.destinations:
            self.publication.add_destination(destination.format(**ports))
        self.session_id = self.publication.session_id

    @property
    def is_open(self) -> bool:
        """Whether the publication is connected and the subscriber has its image."""
        image = self.subscription.image_by_session_id(self.session_id)
        return self.publication.is_connected and image is not None

    def answer(self, aeron: Aeron, ports: dict[str, int | str]) -> None:
        """Open the publication that sends responses on the response channel. The image of the
        request stream must exist.
        """
        image = self.subscription.image_by_session_id(self.session_id)
        assert image is not None
        self.answering = aeron.add_publication(
            f"aeron:udp?control-mode=response|control={ports['here']}:{ports['b']}|term-length=64k"
            f"|response-correlation-id={image.correlation_id}",
            self.stream_id + 1,
        )

    def _on_message(self, payload: memoryview, header: Any) -> None:
        if header.session_id != self.session_id:
            return
        number = NUMBER.unpack_from(payload, STAMPS)[0] if len(payload) >= STAMPS + 8 else -1
        is_in_order = number == self.expected
        if not self.kind.is_reliable:
            is_in_order = self.expected <= number < self.next_number
        if not is_in_order or payload[STAMPS:] != content_of(number)[STAMPS:]:
            self.faults.append(
                f"{self.kind.name}: expected message {self.expected}, found {number} of "
                f"{len(payload)} bytes before position {header.position}"
            )
        self.expected = number + 1

    def offer(self, count: int) -> None:
        """Offer up to `count` messages. Stops early if an offer fails."""
        for _ in range(count):
            if self.publication.offer(content_of(self.next_number)) <= 0:
                return
            self.next_number += 1

    def poll(self) -> None:
        """Read and verify all available messages."""
        while self.subscription.poll(self._handler, 50):
            pass
        if self.answers is not None:
            self.answers.poll(lambda payload, header: None, 50)
            if self.answering is not None:
                self.answering.offer(b"an answer")

    def pass_over(self) -> None:
        """Read the available messages of an attacked stream without verifying them."""
        for item in (self.subscription, self.answers):
            for _ in range(4):
                if item is None or not item.poll(lambda payload, header: None, 50):
                    break
        if self.answering is not None:
            self.answering.offer(b"an answer")

    def resources(self) -> list[Any]:
        """Return the stream's publications and subscriptions, including those of the response
        channel.
        """
        items = (self.publication, self.answering, self.subscription, self.answers)
        return [item for item in items if item is not None]

    def close(self) -> None:
        """Close all publications and subscriptions of the stream."""
        for item in self.resources():
            item.close()
