"""The benchmark load on streams at full speed: sources offer batches, and sinks check message
numbers.

    source --batches--> driver --blocks of whole frames--> sink

A source publishes on each of its streams. If several sources share a stream, it is a concurrent
publication, and otherwise an exclusive one. Each sink reads all streams.

An error is written to the counter board file and ends the load. The benchmark decides what it
means.
"""

import time

import numpy as np

from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.client.subscription import Subscription
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.harness.artifact.run.bench_board import Board, Command, Fault, State
from windtunnel.harness.workload.bench.bench_options import Options
from windtunnel.harness.workload.bench.bench_sequence import OK, Batch, check_block

BLOCK_BYTES = 1 << 17
PROGRESS_S = 0.0005
"""Interval between polls before the measurement starts."""


class Load:
    """The options and the time limit of a load generator, and the shared memory through which the
    benchmark commands it.
    """

    def __init__(self, options: Options, board: Board) -> None:
        self.options = options
        self.board = board
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

    def wait_for_connection(self, aeron: Aeron, publication: Publication) -> bool:
        """Wait for a subscriber to connect. Returns False if the benchmark load ends first."""
        while not publication.is_connected:
            if not self.goes_on(aeron):
                return False
            time.sleep(PROGRESS_S)
        return True

    def wait_for_image(self, aeron: Aeron, subscription: Subscription) -> Image | None:
        """Wait for the image of the stream's only session. Returns None if the benchmark load ends
        first.
        """
        while not subscription.images:
            if not self.goes_on(aeron):
                return None
            time.sleep(PROGRESS_S)
        return subscription.images[0]


class Flow:
    """The messages of one source on one stream."""

    def __init__(self, load: Load, publication: Publication) -> None:
        self._load, self.publication = load, publication
        self._batch = Batch(load.options.message_length, load.options.source)
        self._first = 0
        """Index of the next message of the batch."""

    def offer(self) -> int:
        """Offer the rest of the batch. Returns the number of messages written."""
        batch, board = self._batch, self._load.board
        written, answer = self.publication.offer_batch(
            batch.rest(self._first), batch.lengths, self._first
        )
        self._first += written
        board.message_count += written
        if self._first == batch.count:
            batch.renumber()
            self._first = 0
        elif answer not in (result.BACK_PRESSURED, result.ADMIN_ACTION):
            board.set_fault(Fault.OFFER_REFUSED, expected=board.message_count, found=answer)
        return written if answer == result.BACK_PRESSURED else max(written, 1)


def run_source(load: Load, aeron: Aeron) -> None:
    """Offer numbered messages on all streams at full speed until stopped."""
    options, board = load.options, load.board
    is_shared = options.sources > 1
    add = aeron.add_publication if is_shared else aeron.add_exclusive_publication
    flows = [Flow(load, add(options.channel, each)) for each in options.stream_ids]
    for flow in flows:
        if not load.wait_for_connection(aeron, flow.publication):
            return
    board.state = State.CONNECTED
    while load.goes_on(aeron):
        written = 0
        for flow in flows:
            written += flow.offer()
        if not written:
            options.idle()


class Sink:
    """Checks the numbers of received messages, and counts the messages that arrived in order."""

    def __init__(self, board: Board, message_length: int, sources: int = 1) -> None:
        self._board = board
        self._message_length = message_length
        self._due = np.zeros(sources, dtype=np.int64)
        """Number of the next expected message of each source."""

    @property
    def count(self) -> int:
        """The number of messages that have arrived in order."""
        return int(self._due.sum())

    def on_block(self, block: memoryview, session_id: int, term_id: int, position: int) -> None:
        """Check the messages in one block of whole frames."""
        before = self.count
        frames = np.frombuffer(block, np.int64)
        fault, expected, found = check_block(frames, self._due, self._message_length)
        self._board.message_count += self.count - before
        if fault != OK:
            self._board.set_fault(Fault(int(fault)), expected=int(expected), found=int(found))


def run_sink(load: Load, aeron: Aeron) -> None:
    """Read and check messages of all streams until stopped."""
    options, board = load.options, load.board
    sinks = [Sink(board, options.message_length, options.sources) for _ in options.stream_ids]
    # Load or compile the kernel now instead of at the first message.
    sinks[0].on_block(memoryview(np.empty(0, np.uint8)), 0, 0, 0)
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
        read = 0
        for image, sink in readers:
            read += image.block_poll(sink.on_block, BLOCK_BYTES)
            if image.is_closed:
                board.set_fault(Fault.STREAM_LOST, found=sink.count)
        if not read:
            options.idle()
