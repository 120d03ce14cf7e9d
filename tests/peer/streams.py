"""The same stream through the real client (pyaeron) and this one: write, read and compare."""

import time

import numpy as np

from tests.peer.ports import free_port
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.image.assembler import FragmentAssembler

STREAM_ID = 1001
BEGIN, END = 0x80, 0x40
PATIENCE_S = 60.0
IDLE_S = 0.0002
LENGTHS = (0, 1, 31, 32, 1376, 1377, 5_000, 8_192)
MESSAGES = [
    np.random.default_rng(number).bytes(LENGTHS[number % len(LENGTHS)]) for number in range(200)
]
"""Message lengths around frame boundaries, and enough for several terms of 64 KiB."""


def channel():
    start = "init-term-id=-2|term-id=-2|term-offset=0"
    return f"aeron:udp?endpoint=127.0.0.1:{free_port()}|term-length=64k|{start}"


def until(condition, what):
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, f"{what}: not within {PATIENCE_S:g} s"
        time.sleep(IDLE_S)


class OurClient:
    """Our client."""

    def __init__(self, directory):
        self._client = Aeron(directory)

    def close(self):
        self._client.close()

    def publish(self, channel, *, is_exclusive):
        add = (
            self._client.add_exclusive_publication if is_exclusive else self._client.add_publication
        )
        return add(channel, STREAM_ID)

    def subscribe(self, channel):
        return OurReader(self._client.add_subscription(channel, STREAM_ID))

    @staticmethod
    def is_connected(publication):
        return publication.is_connected


class OurReader:
    def __init__(self, subscription):
        self._subscription = subscription
        self.messages, self.position = [], 0
        self._assembler = FragmentAssembler(self._on_message)
        self._image = None

    def _on_message(self, payload, header):
        self.messages.append(bytes(payload))
        self.position = header.position

    def poll(self):
        if self._image is None and self._subscription.images:
            self._image = self._subscription.images[0]
        self._subscription.poll(self._assembler, 64)

    @property
    def has_image(self):
        return self._image is not None

    @property
    def is_over(self):
        return self._image is not None and self._image.is_end_of_stream


class RealClient:
    """The real client."""

    def __init__(self, directory):
        import pyaeron

        self._client = pyaeron.Aeron(dir=str(directory))
        self._readers = []

    def close(self):
        """Release images first: releasing one after its client would write to freed memory."""
        for reader in self._readers:
            reader.release()
        self._client.close()

    def publish(self, channel, *, is_exclusive):
        add = (
            self._client.add_exclusive_publication if is_exclusive else self._client.add_publication
        )
        return add(channel, STREAM_ID)

    def subscribe(self, channel):
        self._readers.append(RealReader(self._client.add_subscription(channel, STREAM_ID)))
        return self._readers[-1]

    @staticmethod
    def is_connected(publication):
        return publication.is_connected


class RealReader:
    """Reassembles fragments by flags, because pyaeron's `assemble` dropped long messages."""

    def __init__(self, subscription):
        self._subscription = subscription
        self.messages, self.position, self._image = [], 0, None
        self._fragments = []

    def _on_fragment(self, view, header):
        if header.flags & BEGIN:
            self._fragments.clear()
        self._fragments.append(bytes(view))
        if header.flags & END:
            self.messages.append(b"".join(self._fragments))
        self.position = header.position

    def poll(self):
        if self._image is None and self._subscription.image_count:
            self._image = self._subscription.image_at_index(0)
        self._subscription.poll(self._on_fragment, 64, assemble=False)

    def release(self):
        self._image = None

    @property
    def has_image(self):
        return self._image is not None

    @property
    def is_over(self):
        return self._image is not None and self._image.is_end_of_stream


def exchange(writer, reader, *, is_exclusive):
    """Send all messages from one end to another. Returns (messages, reader's position, end)."""
    where = channel()
    reading = reader.subscribe(where)
    publication = writer.publish(where, is_exclusive=is_exclusive)
    until(lambda: writer.is_connected(publication), "connecting")
    for message in MESSAGES:

        def is_taken(message=message):
            reading.poll()
            return publication.offer(message) > 0

        until(is_taken, "offering")
    until(lambda: reading.poll() or len(reading.messages) >= len(MESSAGES), "delivery")
    end = publication.position
    publication.close()
    until(lambda: reading.poll() or reading.is_over, "the end of the stream")
    return reading.messages, reading.position, end
