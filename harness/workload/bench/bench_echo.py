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

import struct
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.driver.wire.data import HEADER_LENGTH
from windtunnel.driver.wire.frame_type import PAD
from windtunnel.harness.artifact.run.bench_board import LATENCIES_MAX, Fault, State, latencies_file
from windtunnel.harness.workload.bench.bench_options import Options
from windtunnel.harness.workload.bench.bench_stream import Load

_now_ns = time.monotonic_ns
ECHO_TIMEOUT_S = 5
LOOKS_BETWEEN_CHECKS = 256
BLOCK_BYTES = 1 << 12

_HEAD = struct.Struct("<i2xHiiiiqq")
"""Frame header fields (length, type, offset, session, stream, term, reserved value), and payload
start."""
assert _HEAD.size == HEADER_LENGTH + 8


class Messages:
    """Parses frames, and keeps the last message that was read."""

    def __init__(self) -> None:
        self.count = 0
        self.number = -1
        self.payload = b""
        """Copy of the last payload, because a driver may zero the log behind its subscribers."""

    def on_block(self, block: memoryview, session_id: int, term_id: int, position: int) -> None:
        """Read the one message in a block. A padding frame is a separate block."""
        if len(block) >= _HEAD.size:
            frame_length, kind, *_, number = _HEAD.unpack_from(block)
            if kind != PAD:
                self.count += 1
                self.number = number
                self.payload = bytes(block[HEADER_LENGTH:frame_length])


Stream = tuple[str, int]
"""The channel and stream id of a stream."""


def _streams(options: Options) -> tuple[Stream, Stream]:
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


def _offer(load: Load, aeron: Aeron, publication: Publication, message: np.ndarray) -> bool:
    """Offer a message until it is accepted. Returns False if the benchmark load ends first."""
    while (answer := publication.offer(message)) <= 0:
        if answer not in (result.BACK_PRESSURED, result.ADMIN_ACTION):
            load.board.set_fault(
                Fault.OFFER_REFUSED, expected=load.board.message_count, found=int(answer)
            )
        if not load.goes_on(aeron):
            return False
        load.options.idle()
    return True


def run_ping(load: Load, aeron: Aeron) -> None:
    """Send numbered messages, each after the previous message's echo, until stopped."""
    options, board = load.options, load.board
    latencies = make_latencies(board.path)
    there, back = _streams(options)
    opened = _open(load, aeron, writes=there, reads=back)
    if opened is None:
        return
    publication, image = opened
    message = np.zeros(options.message_length, np.uint8)
    first_word = message[:8].view(np.int64)
    messages = Messages()
    interval_ns = int(1e9 / options.rate) if options.rate else 0
    due_ns = time.monotonic_ns()
    for number in range(LATENCIES_MAX):
        first_word[0] = number
        due_ns = _wait_until(due_ns + interval_ns, options.idle) if interval_ns else _now_ns()
        if not _offer(load, aeron, publication, message):
            return
        if not _await(load, aeron, image, messages, number):
            return
        latencies[number] = _now_ns() - due_ns
        board.message_count = number + 1
    board.set_fault(Fault.OUT_OF_ROOM, expected=LATENCIES_MAX)


def _wait_until(due_ns: int, idle: Callable[[], None]) -> int:
    """Idle until a time of the monotonic clock. Returns this time."""
    while _now_ns() < due_ns:
        idle()
    return due_ns


def _await(load: Load, aeron: Aeron, image: Image, messages: Messages, number: int) -> bool:
    """Wait for the echo of a message. Returns False if the benchmark load ends first."""
    board, idle, before = load.board, load.options.idle, messages.count
    deadline_s, looks = 0.0, 0
    while messages.count == before:
        if image.block_poll(messages.on_block, BLOCK_BYTES):
            continue
        idle()
        looks += 1
        if looks % LOOKS_BETWEEN_CHECKS == 0:
            now_s = time.monotonic()
            deadline_s = deadline_s or now_s + ECHO_TIMEOUT_S
            if now_s > deadline_s:
                board.set_fault(Fault.ECHO_LOST, expected=number, found=ECHO_TIMEOUT_S)
            if image.is_closed:
                board.set_fault(Fault.STREAM_LOST, found=number)
            if not load.goes_on(aeron):
                return False
    if messages.number != number:
        board.set_fault(Fault.SEQUENCE, expected=number, found=messages.number)
    return load.goes_on(aeron)


def run_pong(load: Load, aeron: Aeron) -> None:
    """Echo every message until stopped."""
    options, board = load.options, load.board
    there, back = _streams(options)
    opened = _open(load, aeron, writes=back, reads=there)
    if opened is None:
        return
    publication, image = opened
    messages = Messages()
    while load.goes_on(aeron):
        before = messages.count
        image.block_poll(messages.on_block, BLOCK_BYTES)
        if messages.count == before:
            options.idle()
            if image.is_closed:
                board.set_fault(Fault.STREAM_LOST, found=messages.count)
        elif _offer(load, aeron, publication, np.frombuffer(messages.payload, np.uint8)):
            board.message_count = messages.count


def make_latencies(board: Path) -> np.ndarray:
    """Create the file for round-trip times with its full length, as a sparse file."""
    path = latencies_file(board)
    return np.memmap(path, dtype=np.int64, mode="w+", shape=(LATENCIES_MAX,))
