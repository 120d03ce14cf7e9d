"""Measures a client's calls from Python: offers or polls of single messages.

    offer offer ... offer  |  poll poll ... poll  |  compare all bytes
    `---------------- one burst ---------------'

One thread publishes a burst of numbered messages through shared memory, and reads it. Either the
offers are timed or the polls, by the clock and by the thread's processor time, which other
processes on this machine affect less. Both include refused offers and polls without a message. The
handler copies each payload, and after the burst the copies are compared with the messages.

Both clients are used as their documentation shows: a concurrent publication, `offer(message)` with
`bytes`, and `poll(handler)` with its default limit, which is ten fragments for both.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from windtunnel.driver.client.aeron import Aeron
from windtunnel.harness.artifact.run.bench_board import Fault, State
from windtunnel.harness.workload.bench.bench_options import Options
from windtunnel.harness.workload.bench.bench_stream import Load

BURST_MESSAGES = 500
"""Messages per burst. They fit into the publication's window and the processor's cache."""
BURST_TIMEOUT_S = 5.0
"""Seconds after which messages of a burst that have not arrived are lost."""
LOOKS_BETWEEN_CHECKS = 64
NUMBER_LENGTH = 8

Handler = Callable[[Any, Any], object]
GoesOn = Callable[[], bool]


def connect(options: Options) -> AbstractContextManager[Any]:
    """Connect the client that the options name to the driver."""
    if options.client == "windtunnel":
        return Aeron(options.aeron_dir)
    import pyaeron

    client: AbstractContextManager[Any] = pyaeron.Aeron(dir=str(options.aeron_dir))
    return client


def messages_from(first: int, length: int, count: int = BURST_MESSAGES) -> list[bytes]:
    """Make `count` messages of `length` bytes: a number, from `first` on, and bytes that differ
    from those of the message before.
    """
    numbers = first + np.arange(count, dtype=np.int64)
    rows = (7 * numbers[:, None] + np.arange(length)).astype(np.uint8)
    rows[:, :NUMBER_LENGTH] = numbers.view(np.uint8).reshape(count, NUMBER_LENGTH)[:, :length]
    content = rows.tobytes()
    return [content[at : at + length] for at in range(0, len(content), length)]


def offer_windtunnel(publication: Any, messages: Sequence[bytes], goes_on: GoesOn) -> None:
    """Offer each message until it is accepted, or until `goes_on` returns False. Windtunnel's
    `offer` returns a position or a negative code.
    """
    offer = publication.offer
    for message in messages:
        while offer(message) < 0:
            if not goes_on():
                return


def offer_pyaeron(publication: Any, messages: Sequence[bytes], goes_on: GoesOn) -> None:
    """Offer like `offer_windtunnel`. pyaeron's `offer` returns True or a code that is false."""
    offer = publication.offer
    for message in messages:
        while not offer(message):
            if not goes_on():
                return


OFFERS = {"windtunnel": offer_windtunnel, "pyaeron": offer_pyaeron}


def poll_all(subscription: Any, handler: Handler, count: int, goes_on: GoesOn) -> None:
    """Poll until `count` messages have been read, or until `goes_on` returns False."""
    poll = subscription.poll
    while count > 0:
        polled = poll(handler)
        count -= polled
        if not polled and not goes_on():
            return


def run_offer(load: Load, aeron: Any) -> None:
    """Publish and read bursts until stopped, and time the offers."""
    _run(load, aeron, times_offers=True)


def run_poll(load: Load, aeron: Any) -> None:
    """Publish and read bursts until stopped, and time the polls."""
    _run(load, aeron, times_offers=False)


def _run(load: Load, aeron: Any, *, times_offers: bool) -> None:
    options, board = load.options, load.board
    clock, processor_clock = time.perf_counter_ns, time.thread_time_ns
    subscription = aeron.add_subscription(options.channel, options.stream_id)
    publication = aeron.add_publication(options.channel, options.stream_id)
    if not load.wait(aeron, lambda: publication.is_connected and subscription.is_connected):
        return
    board.state = State.CONNECTED
    offer_all, received = OFFERS[options.client], list[bytes]()
    looks, deadline_s = 0, 0.0
    append = received.append

    def on_fragment(payload: Any, header: Any) -> None:
        append(bytes(payload))

    def goes_on() -> bool:
        nonlocal looks
        options.idle()
        looks += 1
        if looks % LOOKS_BETWEEN_CHECKS != 0:
            return True
        return load.is_well(aeron) and time.monotonic() < deadline_s

    while load.goes_on(aeron):
        deadline_s = time.monotonic() + BURST_TIMEOUT_S
        messages = messages_from(board.message_count, options.message_length)
        times = [processor_clock(), clock()]
        offer_all(publication, messages, goes_on)
        times += [clock(), processor_clock(), processor_clock(), clock()]
        poll_all(subscription, on_fragment, len(messages), goes_on)
        times += [clock(), processor_clock()]
        if not check(load, messages, received):
            return
        received.clear()
        before, began_ns, ended_ns, after = times[:4] if times_offers else times[4:]
        board.add_burst(ended_ns - began_ns, after - before, len(messages))


def check(load: Load, messages: Sequence[bytes], received: Sequence[bytes]) -> bool:
    """Compare the received messages with those sent. Returns False after it has reported a
    fault.
    """
    if messages == received:
        return True
    board, first = load.board, load.board.message_count
    for number, (message, found) in enumerate(zip(messages, received, strict=False), first):
        if len(message) != len(found):
            board.set_fault(Fault.LENGTH, expected=len(message), found=len(found))
        elif message[:NUMBER_LENGTH] != found[:NUMBER_LENGTH]:
            read = int.from_bytes(found[:NUMBER_LENGTH], "little", signed=True)
            board.set_fault(Fault.SEQUENCE, expected=number, found=read)
        elif message != found:
            board.set_fault(Fault.CONTENT, expected=number)
    # All that were compared are equal, so there are too many, or too few.
    board.set_fault(Fault.SEQUENCE, first + len(messages), first + len(received))
    return False
