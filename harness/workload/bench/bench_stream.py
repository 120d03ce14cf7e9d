"""The benchmark load on one stream at full speed: a source offers batches, and a sink checks
message numbers.

    source --batches--> driver --blocks of whole frames--> sink

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


def run_source(load: Load, aeron: Aeron) -> None:
    """Offer numbered messages at full speed until stopped."""
    options, board = load.options, load.board
    batch = Batch(options.message_length)
    publication = aeron.add_exclusive_publication(options.channel, options.stream_id)
    if not load.wait_for_connection(aeron, publication):
        return
    board.state = State.CONNECTED
    first = sent = 0
    while load.goes_on(aeron):
        written, answer = publication.offer_batch(batch.rest(first), batch.lengths, first)
        first, sent = first + written, sent + written
        board.message_count = sent
        if first == batch.count:
            batch.renumber()
            first = 0
        elif answer == result.BACK_PRESSURED:
            if not written:
                options.idle()
        elif answer != result.ADMIN_ACTION:
            board.set_fault(Fault.OFFER_REFUSED, expected=sent, found=answer)


class Sink:
    """Checks the numbers of received messages, and counts the messages that arrived in order."""

    def __init__(self, board: Board, message_length: int) -> None:
        self._board = board
        self._message_length = message_length
        self.due = 0
        """Number of the next expected message."""

    def on_block(self, block: memoryview, session_id: int, term_id: int, position: int) -> None:
        """Check the messages in one block of whole frames."""
        frames = np.frombuffer(block, np.int64)
        due, fault, found = check_block(frames, self.due, self._message_length)
        self.due = int(due)
        self._board.message_count = self.due
        if fault != OK:
            expected = self._message_length if fault == Fault.LENGTH else self.due
            self._board.set_fault(Fault(int(fault)), expected=expected, found=int(found))


def run_sink(load: Load, aeron: Aeron) -> None:
    """Read and check messages until stopped."""
    options, board = load.options, load.board
    sink = Sink(board, options.message_length)
    # Load or compile the kernel now instead of at the first message.
    sink.on_block(memoryview(np.empty(0, np.uint8)), 0, 0, 0)
    subscription = aeron.add_subscription(options.channel, options.stream_id)
    board.state = State.SUBSCRIBED
    image = load.wait_for_image(aeron, subscription)
    if image is None:
        return
    board.state = State.CONNECTED
    while load.goes_on(aeron):
        if image.block_poll(sink.on_block, BLOCK_BYTES) == 0:
            if image.is_closed:
                board.set_fault(Fault.STREAM_LOST, found=sink.due)
            options.idle()
