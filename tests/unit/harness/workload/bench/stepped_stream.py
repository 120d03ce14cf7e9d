"""Streams without a driver for load generators, with actions between the calls of their loops."""

import struct

from tests.unit.driver.client.own_stream import OwnStream
from windtunnel.driver.logbuffer import descriptor
from windtunnel.harness.workload.bench.bench_sequence import content_of

LENGTH = 32
FRAME = 64
"""Bytes of a message of LENGTH in a log."""


class SteppedStream:
    """A stream with an action before each call of a compiled loop: the next step, or `on_end` if
    there is none.
    """

    def __init__(self, folder, on_end, name="stream", log_type=descriptor.EXCLUSIVE_PUBLICATION):
        (folder / name).mkdir()
        self.stream = OwnStream(folder / name, log_type=log_type)
        self.steps, self._on_end = [], on_end

    def writing(self):
        """Return the publication for a load."""
        return _Stepped(self, self.stream.publication)

    def reading(self):
        """Return the image for a load."""
        return _Stepped(self, self.stream.image)

    def numbers(self):
        """Read the numbers of all messages that have arrived."""
        found = []
        while self.stream.image.poll(lambda payload, _: found.append(number_of(payload))):
            pass
        return found

    def step(self):
        (self.steps.pop(0) if self.steps else self._on_end)()


class _Stepped:
    """A publication or an image, of which only the compiled loops are stepped."""

    def __init__(self, stepped, end):
        self._stepped, self._end = stepped, end

    def __getattr__(self, name):
        return getattr(self._end, name)

    def run_loop(self, loop, *arguments):
        self._stepped.step()
        return self._end.run_loop(loop, *arguments)


def number_of(payload):
    return struct.unpack_from("<q", payload)[0]


def message(number, length=LENGTH):
    """Make the message of a source."""
    content = content_of(length)
    row = content[number % len(content)].tobytes()
    return (struct.pack("<q", number) + row[8:])[:length]


def echo(number, length=LENGTH):
    """Make the message of a ping."""
    return struct.pack("<q", number) + message(0, length)[8:]
