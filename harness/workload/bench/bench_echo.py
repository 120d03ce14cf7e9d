"""Measures round trips, one message at a time: ping sends messages and measures the time, and pong
echoes them.

    ping --channel--> pong
         <--reply----

A round trip lasts from before the offer until after the echo was read, in one process and by one
clock. Every message has its own number, and the echo must match the message that was sent.

At a fixed rate, a round trip lasts from when its message was due. If an echo is late, so are the
messages after it, and the time by which they are late counts (coordinated omission). A message that
is due has to be written at once: a program that waits for data in between reads until then.
"""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.compiled_loops import PublicationLog
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.harness.artifact.run.bench_board import (
    LATENCIES_MAX,
    Fault,
    Found,
    State,
    latencies_file,
)
from windtunnel.harness.workload.bench.bench_loops import PING, TURNS, ping, pong
from windtunnel.harness.workload.bench.bench_options import Options
from windtunnel.harness.workload.bench.bench_sequence import content_of
from windtunnel.harness.workload.bench.bench_stream import Load

ECHO_TIMEOUT_S = 5

Stream = tuple[str, int]
"""The channel and stream id of a stream."""


def streams(options: Options) -> tuple[Stream, Stream]:
    """Return the channels and stream ids from ping to pong and back. The two stream ids differ."""
    there = options.channel, options.stream_id
    return there, (options.reply_channel, options.stream_id + 1)


def _open(
    load: Load, aeron: Aeron, writes: Stream, reads: Stream
) -> tuple[Publication, Image] | None:
    """Open a publication on one stream, and wait for the image of the other stream. Returns None if
    the benchmark load ends first.
    """
    subscription = aeron.add_subscription(*reads)
    load.board.state = State.SUBSCRIBED
    publication = aeron.add_exclusive_publication(*writes)
    image = load.wait_for_image(aeron, subscription)
    if image is None or not load.wait_for_connection(aeron, publication):
        return None
    load.board.state = State.CONNECTED
    return publication, image


def _content(options: Options) -> NDArray[np.int64]:
    """Return the content of every message."""
    return content_of(options.message_length)[:1]


def run_ping(load: Load, aeron: Aeron) -> None:
    """Send numbered messages, each after the previous message's echo, until stopped."""
    options, board = load.options, load.board
    latencies = make_latencies(board.path)
    there, back = streams(options)
    opened = _open(load, aeron, writes=there, reads=back)
    if opened is None:
        return
    publication, image = opened
    content = _content(options)
    message = content.view(np.uint8)[0, : options.message_length].copy()
    interval_ns = int(1e9 / options.rate) if options.rate else 0
    pings, due = np.zeros(1, PING), np.zeros(1, np.int64)
    number, deadline_s = 0, time.monotonic() + ECHO_TIMEOUT_S
    while load.goes_on(aeron):
        found = _run(
            publication, image, ping, message, content, latencies, interval_ns, pings, due,
            board.counts, TURNS, options.strategy,
        )  # fmt: skip
        board.set_found(found or (Fault.STREAM_LOST, 0, number))
        if number < board.message_count:
            number, deadline_s = board.message_count, time.monotonic() + ECHO_TIMEOUT_S
        elif time.monotonic() > deadline_s:
            board.set_fault(Fault.ECHO_LOST, expected=number, found=ECHO_TIMEOUT_S)


def run_pong(load: Load, aeron: Aeron) -> None:
    """Echo every message until stopped."""
    options, board = load.options, load.board
    there, back = streams(options)
    opened = _open(load, aeron, writes=back, reads=there)
    if opened is None:
        return
    publication, image = opened
    content, due = _content(options), np.zeros(1, np.int64)
    while load.goes_on(aeron):
        found = _run(
            publication, image, pong, options.message_length, content, due, board.counts,
            TURNS, options.strategy,
        )  # fmt: skip
        board.set_found(found or (Fault.STREAM_LOST, 0, board.message_count))


def _run(
    publication: Publication, image: Image, loop: Callable[..., Found], *arguments: object
) -> Found | None:
    """Run a compiled loop that reads an image and writes to a publication. Returns its result, or
    None if one of them is closed.
    """

    def on_log(log: PublicationLog) -> Found | None:
        return image.run_loop(loop, log, *arguments)

    return publication.run_loop(on_log)


def make_latencies(board: Path) -> np.ndarray:
    """Create the file for round-trip times with its full length, as a sparse file."""
    path = latencies_file(board)
    return np.memmap(path, dtype=np.int64, mode="w+", shape=(LATENCIES_MAX,))
