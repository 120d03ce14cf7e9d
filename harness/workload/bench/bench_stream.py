"""The benchmark load on streams at full speed: sources offer batches, and sinks check every byte.

    source --batches--> driver --blocks of whole frames--> sink

A source publishes on each of its streams. If several sources share a stream, it is a concurrent
publication, and otherwise an exclusive one. Each sink reads all streams.

An error is written to the counter board file and ends the load. The benchmark decides what it
means.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.client.subscription import Subscription
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.harness.artifact.run.bench_board import Board, Command, Fault, State
from windtunnel.harness.workload.bench.bench_loops import (
    NO_LIMIT,
    RETURN,
    STREAM_TURNS,
    TURNS,
    read_blocks,
    write_batches,
)
from windtunnel.harness.workload.bench.bench_options import Options
from windtunnel.harness.workload.bench.bench_sequence import Batch, content_of

PROGRESS_S = 0.0005
"""Interval between polls before the measurement starts."""


class Load:
    """The options and the time limit of a load generator, and the shared memory through which the
    benchmark commands it.
    """

    def __init__(self, options: Options, board: Board) -> None:
        self.options = options
        self.board = board
        self.turns = TURNS if options.streams == 1 else STREAM_TURNS
        """Turns of a compiled loop on one stream, before the next stream has its turns."""
        self.strategy = int(options.strategy) if options.streams == 1 else RETURN
        """What a compiled loop does in a turn without work."""
        self._deadline_s = time.monotonic() + options.limit_s

    def goes_on(self, aeron: Aeron) -> bool:
        """Return whether the load should continue: it was not stopped, has no fault, and is within
        its time limit.
        """
        return not self.board.is_stopped and self.is_well(aeron)

    def is_well(self, aeron: Aeron) -> bool:
        """Return whether the load has no fault and is within its time limit, even if it was
        stopped.
        """
        if self.board.fault is not Fault.NONE:
            return False
        if aeron.is_closed:
            self.board.set_fault(Fault.CLIENT_CLOSED, found=self.board.message_count)
            return False
        if time.monotonic() > self._deadline_s:
            self.board.set_fault(Fault.TOO_LONG, expected=int(self.options.limit_s))
            return False
        return True

    def stay(self, aeron: Aeron) -> None:
        """Keep the streams open until the LEAVE command, because the peer may still be reading."""
        self.board.state = State.ENDED
        while self.board.order is not Command.LEAVE and self.board.fault is Fault.NONE:
            if aeron.is_closed or time.monotonic() > self._deadline_s:
                return
            time.sleep(PROGRESS_S)

    def wait(self, aeron: Any, condition: Callable[[], bool]) -> bool:
        """Wait for a condition. Returns False if the benchmark load ends first."""
        while not condition():
            if not self.goes_on(aeron):
                return False
            time.sleep(PROGRESS_S)
        return True

    def wait_for_connection(self, aeron: Aeron, publication: Publication) -> bool:
        """Wait for a subscriber to connect. Returns False if the benchmark load ends first."""
        return self.wait(aeron, lambda: publication.is_connected)

    def wait_for_image(self, aeron: Aeron, subscription: Subscription) -> Image | None:
        """Wait for the image of the stream's only session. Returns None if the benchmark load ends
        first.
        """
        found = self.wait(aeron, lambda: bool(subscription.images))
        return subscription.images[0] if found else None


class Writer:
    """The messages of one source on one stream."""

    def __init__(self, message_length: int, source: int = 0) -> None:
        self._batch = Batch(message_length, source)
        self._place = np.zeros(1, np.int64)
        """Index of the next message of the batch."""

    def write(
        self,
        load: Load,
        publication: Publication,
        counts: NDArray[np.int64],
        limit: int = NO_LIMIT,
    ) -> None:
        """Offer messages in the turns of a load, or until `counts`, int64[1], has reached a
        limit.
        """
        found = publication.run_loop(
            write_batches, self._batch.arrays, self._place, counts, limit, load.turns, load.strategy
        )
        load.board.set_found(found or (Fault.OFFER_REFUSED, int(counts[0]), result.CLOSED))


def run_source(load: Load, aeron: Aeron) -> None:
    """Offer numbered messages on all streams at full speed until stopped."""
    options, board = load.options, load.board
    is_shared = options.sources > 1
    add = aeron.add_publication if is_shared else aeron.add_exclusive_publication
    flows = [
        (add(options.channel, each), Writer(options.message_length, options.source))
        for each in options.stream_ids
    ]
    for publication, _ in flows:
        if not load.wait_for_connection(aeron, publication):
            return
    board.state = State.CONNECTED
    while load.goes_on(aeron):
        before = board.message_count
        for publication, writer in flows:
            writer.write(load, publication, board.counts)
        if board.message_count == before:
            options.idle()


class Sink:
    """Checks received messages, and counts those that arrived in order."""

    def __init__(self, message_length: int, sources: int = 1) -> None:
        self._message_length = message_length
        self._content = content_of(message_length)
        self._due = np.zeros(sources, dtype=np.int64)
        """Number of the next expected message of each source."""

    @property
    def count(self) -> int:
        """The number of messages that have arrived in order."""
        return int(self._due.sum())

    def read(self, load: Load, image: Image) -> None:
        """Read and check messages in the turns of a load."""
        found = image.run_loop(
            read_blocks, self._due, self._message_length, self._content, load.board.counts,
            load.turns, load.strategy,
        )  # fmt: skip
        load.board.set_found(found or (Fault.STREAM_LOST, 0, self.count))


def run_sink(load: Load, aeron: Aeron) -> None:
    """Read and check messages of all streams until stopped."""
    options, board = load.options, load.board
    sinks = [Sink(options.message_length, options.sources) for _ in options.stream_ids]
    subscriptions = [aeron.add_subscription(options.channel, each) for each in options.stream_ids]
    board.state = State.SUBSCRIBED
    readers = []
    for sink, subscription in zip(sinks, subscriptions, strict=True):
        image = load.wait_for_image(aeron, subscription)
        if image is None:
            return
        readers.append((image, sink))
    board.state = State.CONNECTED
    while load.goes_on(aeron):
        before = board.message_count
        for image, sink in readers:
            sink.read(load, image)
        if board.message_count == before:
            options.idle()
