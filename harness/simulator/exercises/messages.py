"""Numbered messages that an exercise publishes, reads and compares."""

from __future__ import annotations

from collections.abc import Sequence

from windtunnel.driver.client.image.assembler import FragmentAssembler
from windtunnel.driver.client.image.header import Header
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.client.subscription import Subscription
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.harness.simulator.exercises.waiting import Routine, Wait, require
from windtunnel.harness.workload.stop import SubjectError

POLLED = 64
"""Number of fragments that a reader takes at a time."""
_REFUSALS = (result.BACK_PRESSURED, result.ADMIN_ACTION, result.NOT_CONNECTED)


def message(number: int, length: int) -> bytes:
    """Return the message with a number. All its bytes depend on the number."""
    return b"".join((number * 7 + at).to_bytes(8, "little") for at in range(-(-length // 8)))[
        :length
    ]


class Reader:
    """Reads whole messages of a subscription."""

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.messages: list[bytes] = []
        self._assembler = FragmentAssembler(self._on_message)

    def _on_message(self, payload: memoryview, header: Header) -> None:
        self.messages.append(bytes(payload))

    def poll(self) -> int:
        """Read what is available, and return the number of messages so far."""
        self.subscription.poll(self._assembler, POLLED)
        return len(self.messages)

    def take(self) -> list[bytes]:
        """Return the messages so far, and forget them."""
        taken, self.messages = self.messages, []
        return taken


def has_read(reader: Reader, count: int) -> Wait:
    """Return the condition that a reader has read a number of messages."""
    return Wait(lambda: reader.poll() == count, f"{count} messages at each reader")


def offer(publication: Publication, content: bytes) -> int:
    """Offer a message. Returns the position, or 0 if it must be offered again."""
    position = publication.offer(content)
    if position <= 0 and position not in _REFUSALS:
        raise SubjectError(f"an offer of {len(content)} bytes returned {position}")
    return max(0, position)


def exchange(
    publication: Publication, readers: Sequence[Reader], count: int, length: int, first: int = 0
) -> Routine[None]:
    """Publish messages and read them with each reader, which must receive these and no others."""
    expected = [message(first + at, length) for at in range(count)]
    sent = 0

    def progress() -> bool:
        nonlocal sent
        while sent < count and offer(publication, expected[sent]):
            sent += 1
        counts = [each.poll() for each in readers]
        return sent == count and min(counts) >= count

    stream = f"stream {publication.stream_id} at {publication.channel}"
    yield Wait(progress, f"{count} messages of {stream}, found fewer at one of the readers")
    for reader in readers:
        found = reader.take()
        require(
            found == expected,
            f"{count} messages of {stream} in order, {_difference(found, expected)}",
        )


def _difference(found: list[bytes], expected: list[bytes]) -> str:
    at = next(
        (at for at, (one, two) in enumerate(zip(found, expected, strict=False)) if one != two),
        min(len(found), len(expected)),
    )
    return f"found {len(found)}, and another message {at}"
