"""The load generators for pyaeron's client, Aeron's C client with one call from Python for each
message.

    source --offer--> driver --poll--> sink        ping <--offer, poll--> pong

They send and check the same messages as those for Windtunnel's client, and report the same faults.
Python takes most of their time, so drivers differ less than with compiled loops.
"""

import time
from typing import Any

from windtunnel.harness.artifact.run.bench_board import Fault, State
from windtunnel.harness.workload.bench.bench_echo import ECHO_TIMEOUT_S, make_latencies, streams
from windtunnel.harness.workload.bench.bench_sequence import SEQUENCE_BITS, content_of
from windtunnel.harness.workload.bench.bench_stream import Load

MESSAGES_PER_TURN = 256
"""Messages that a source offers, or a sink polls, before it checks if the benchmark has ended."""
_NUMBER_LENGTH = 8


class Messages:
    """The messages of a length, as bytes."""

    def __init__(self, message_length: int, repeats: int | None = None) -> None:
        """Make messages whose content repeats after `repeats`, or as that of a batch does."""
        rows = content_of(message_length)[:repeats]
        self._rest: list[bytes] = [row.tobytes()[_NUMBER_LENGTH:message_length] for row in rows]

    def message(self, number: int, source: int = 0) -> bytes:
        """Return a message of a source."""
        word = (source << SEQUENCE_BITS) + number
        return word.to_bytes(_NUMBER_LENGTH, "little") + self._rest[number % len(self._rest)]


class Checker:
    """Checks received messages, and counts those that arrived in order."""

    def __init__(self, load: Load, messages: Messages, sources: int = 1) -> None:
        self._load, self._messages = load, messages
        self.due = [0] * sources
        """Number of the next message of each source."""

    @property
    def count(self) -> int:
        """The number of messages that have arrived in order."""
        return sum(self.due)

    def on_fragment(self, payload: Any, header: Any) -> None:
        """Check a message, and report a fault if it is not the next one of its source."""
        found = bytes(payload)
        source = int.from_bytes(found[:_NUMBER_LENGTH], "little") >> SEQUENCE_BITS
        due = self.due
        if source < len(due) and found == self._messages.message(due[source], source):
            due[source] += 1
        elif self._load.board.fault is Fault.NONE:
            self._report(found)

    def _report(self, found: bytes) -> None:
        board, length = self._load.board, self._load.options.message_length
        if len(found) != length:
            board.set_fault(Fault.LENGTH, expected=length, found=len(found))
            return
        word = int.from_bytes(found[:_NUMBER_LENGTH], "little", signed=True)
        source, number = word >> SEQUENCE_BITS, word & ((1 << SEQUENCE_BITS) - 1)
        if not 0 <= source < len(self.due):
            board.set_fault(Fault.SEQUENCE, expected=self.due[0], found=word)
        elif number != self.due[source]:
            board.set_fault(Fault.SEQUENCE, expected=self.due[source], found=number)
        else:
            board.set_fault(Fault.CONTENT, expected=number)


def _is_open(load: Load, stream: Any) -> bool:
    """Return whether a publication or subscription has a peer. Otherwise report a fault."""
    if stream.is_connected:
        return True
    load.board.set_fault(Fault.STREAM_LOST, found=load.board.message_count)
    return False


def run_source(load: Load, aeron: Any) -> None:
    """Offer numbered messages on all streams at full speed until stopped."""
    options, board = load.options, load.board
    add = aeron.add_publication if options.sources > 1 else aeron.add_exclusive_publication
    publications = [add(options.channel, each) for each in options.stream_ids]
    if not load.wait(aeron, lambda: all(each.is_connected for each in publications)):
        return
    messages, numbers = Messages(options.message_length), [0] * len(publications)
    board.state = State.CONNECTED
    while load.goes_on(aeron):
        before = board.message_count
        for index, publication in enumerate(publications):
            offer, number = publication.offer, numbers[index]
            for _ in range(MESSAGES_PER_TURN):
                if not offer(messages.message(number, options.source)):
                    break
                number += 1
            board.message_count += number - numbers[index]
            numbers[index] = number
            if not _is_open(load, publication):
                return
        if board.message_count == before:
            options.idle()


def run_sink(load: Load, aeron: Any) -> None:
    """Read and check messages of all streams until stopped."""
    options, board = load.options, load.board
    messages = Messages(options.message_length)
    subscriptions = [aeron.add_subscription(options.channel, each) for each in options.stream_ids]
    checkers = [Checker(load, messages, options.sources) for _ in subscriptions]
    board.state = State.SUBSCRIBED
    if not load.wait(aeron, lambda: all(each.is_connected for each in subscriptions)):
        return
    board.state = State.CONNECTED
    while load.goes_on(aeron):
        polled = 0
        for subscription, checker in zip(subscriptions, checkers, strict=True):
            polled += subscription.poll(checker.on_fragment, MESSAGES_PER_TURN)
            if not _is_open(load, subscription):
                return
        board.message_count = sum(checker.count for checker in checkers)
        if not polled:
            options.idle()


def run_ping(load: Load, aeron: Any) -> None:
    """Send numbered messages, each after the previous message's echo, until stopped."""
    options, board = load.options, load.board
    latencies = make_latencies(board.path)
    there, back = streams(options)
    opened = _open(load, aeron, writes=there, reads=back)
    if opened is None:
        return
    publication, subscription = opened
    messages = Messages(options.message_length, 1)
    checker = Checker(load, messages)
    interval_ns = int(1e9 / options.rate) if options.rate else 0
    clock, number, due_ns = time.monotonic_ns, 0, time.monotonic_ns()
    while load.goes_on(aeron):
        if number == latencies.size:
            board.set_fault(Fault.OUT_OF_ROOM, expected=latencies.size)
            return
        # The first echo is late if its pong was still starting. Messages are due from then on.
        is_paced = interval_ns > 0 and number > 0
        due_ns = due_ns + interval_ns if is_paced else clock()
        while clock() < due_ns:
            options.idle()
        if not _exchange(load, aeron, publication, subscription, messages.message(number), checker):
            return
        now_ns = clock()
        latencies[number] = now_ns - due_ns
        due_ns = now_ns if number == 0 else due_ns
        number += 1
        board.message_count = number


def _exchange(
    load: Load, aeron: Any, publication: Any, subscription: Any, message: bytes, checker: Checker
) -> bool:
    """Send a message and wait for its echo. Returns False if the benchmark load ends first."""
    idle, number, turns = load.options.idle, checker.count, 0
    deadline_s = time.monotonic() + ECHO_TIMEOUT_S
    is_sent = False
    while checker.count == number:
        is_sent = is_sent or bool(publication.offer(message))
        if is_sent and subscription.poll(checker.on_fragment, 1):
            continue
        idle()
        turns += 1
        if turns % MESSAGES_PER_TURN == 0:
            if not (load.goes_on(aeron) and _is_open(load, publication)):
                return False
            if time.monotonic() > deadline_s:
                load.board.set_fault(Fault.ECHO_LOST, expected=number, found=ECHO_TIMEOUT_S)
                return False
    return True


def run_pong(load: Load, aeron: Any) -> None:
    """Echo every message until stopped."""
    options, board = load.options, load.board
    there, back = streams(options)
    opened = _open(load, aeron, writes=back, reads=there)
    if opened is None:
        return
    publication, subscription = opened
    messages = Messages(options.message_length, 1)
    checker, sent = Checker(load, messages), 0
    while load.goes_on(aeron):
        polled = subscription.poll(checker.on_fragment, 1)
        if sent < checker.count and publication.offer(messages.message(sent)):
            sent += 1
            board.message_count = sent
        elif not polled:
            options.idle()
            if not _is_open(load, subscription):
                return


def _open(
    load: Load, aeron: Any, writes: tuple[str, int], reads: tuple[str, int]
) -> tuple[Any, Any] | None:
    """Open a publication on one stream, and a subscription to the other one. Returns None if the
    benchmark load ends before both are connected.
    """
    subscription = aeron.add_subscription(*reads)
    load.board.state = State.SUBSCRIBED
    publication = aeron.add_exclusive_publication(*writes)
    if not load.wait(aeron, lambda: subscription.is_connected and publication.is_connected):
        return None
    load.board.state = State.CONNECTED
    return publication, subscription
