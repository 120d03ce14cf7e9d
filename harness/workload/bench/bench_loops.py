"""The compiled loops of load generators. They take their time in the client, not in Python.

    write_batches   source, archive    numbered messages, until a limit
    read_blocks     sink, archive      checks every byte
    ping, pong                         one message at a time, and its echo

A loop ends after a number of turns, so that its load generator can check whether the benchmark has
ended. A turn without work idles, or ends the loop if there are other streams. A loop that finds a
fault returns it: (fault, the expected value, the value found instead), with `OK` for no fault.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.driver.base.atomics import get_i32, put_i64
from windtunnel.driver.base.system import monotonic_ns, sleep_ns, yield_cpu
from windtunnel.driver.client.compiled_loops import (
    Blocks,
    PublicationLog,
    consume,
    next_block,
    offer,
    offer_batch,
)
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.harness.artifact.run.bench_board import Fault, Found
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH, aligned
from windtunnel.harness.workload.bench.bench_options import SLEEP_NS, Idle
from windtunnel.harness.workload.bench.bench_sequence import OK, BatchArrays, check_block, renumber

TURNS = 1024
"""Turns of a loop on the only stream of a load generator: at least 0.3 ms."""
STREAM_TURNS = 16
"""Turns of a loop on one of several streams, before the next stream has its turns."""
RETURN = len(Idle)
"""The idle strategy of a loop on one of several streams: it ends."""
NO_LIMIT = (1 << 63) - 1
BLOCK_BYTES = 1 << 17
_YIELD, _SLEEP = int(Idle.YIELD), int(Idle.SLEEP)
_ADMIN_ACTION, _BACK_PRESSURED = result.ADMIN_ACTION, result.BACK_PRESSURED
_OFFER_REFUSED, _OUT_OF_ROOM = int(Fault.OFFER_REFUSED), int(Fault.OUT_OF_ROOM)

PING = np.dtype(
    (
        np.record,
        [
            ("phase", "i8"),
            ("due_ns", "i8"),  # when the message was due, by the monotonic clock
        ],
    )
)
WAITING, DUE, SENT = range(3)
"""Phases of a ping: no message is due, a message has to be sent, its echo has not arrived."""


@kernel
def idle(strategy: int) -> None:
    """Idle as a member of `Idle` says."""
    if strategy == _YIELD:
        yield_cpu()
    elif strategy == _SLEEP:
        sleep_ns(SLEEP_NS)


@kernel
def is_refused(answer: int) -> bool:
    """Return whether the result of an offer is an error that a later offer will not mend."""
    return answer < 0 and answer != _BACK_PRESSURED and answer != _ADMIN_ACTION


@kernel
def write_batches(
    publication: PublicationLog,
    batch: BatchArrays,
    place: NDArray[np.int64],
    counts: NDArray[np.int64],
    limit: int,
    turns: int,
    strategy: int,
) -> Found:
    """Write numbered messages, a batch each turn, until `counts` has reached `limit`.

    Shapes:  batch (messages uint8[n], their numbers int64[m], lengths int64[m]);
             place int64[1], index of the next message of the batch; counts int64[1], messages so
             far
    """
    messages, numbers, lengths = batch
    length, count = lengths[0], lengths.size
    for _ in range(turns):
        first = place[0]
        end = min(count, first + limit - counts[0])
        if end <= first:
            break
        written, answer = offer_batch(publication, messages, first * length, lengths[:end], first)
        counts[0] += written
        place[0] += written
        if place[0] == count:
            renumber(numbers)
            place[0] = 0
        elif is_refused(answer):
            return _OFFER_REFUSED, counts[0], answer
        elif written == 0 and answer == _BACK_PRESSURED:
            if strategy == RETURN:
                break
            idle(strategy)
    return OK, 0, 0


@kernel
def check_next(
    blocks: Blocks,
    at: int,
    length: int,
    due: NDArray[np.int64],
    message_length: int,
    content: NDArray[np.int64],
) -> Found:
    """Check the messages in one block, as `check_block` does."""
    return check_block(blocks.log[at : at + length].view(np.int64), due, message_length, content)


@kernel
def read_blocks(
    blocks: Blocks,
    due: NDArray[np.int64],
    message_length: int,
    content: NDArray[np.int64],
    counts: NDArray[np.int64],
    turns: int,
    strategy: int,
) -> Found:
    """Read and check blocks, one each turn.

    Shapes:  due int64[sources], the next number of each source; content int64[m, k], see
             `check_block`; counts int64[1], messages so far
    """
    for _ in range(turns):
        at, length = next_block(blocks, BLOCK_BYTES)
        if length == 0:
            if strategy == RETURN:
                break
            idle(strategy)
            continue
        before = due.sum()
        fault, expected, found = check_next(blocks, at, length, due, message_length, content)
        counts[0] += due.sum() - before
        if fault != OK:
            return fault, expected, found
        consume(blocks, length)
    return OK, 0, 0


@kernel
def next_message(blocks: Blocks) -> tuple[int, int]:
    """Find the next frame, as `next_block` does."""
    at, length = next_block(blocks, BLOCK_BYTES)
    # A frame that is not committed has a negative length.
    return at, min(length, aligned(get_i32(blocks.log, at))) if length > 0 else 0


@kernel
def ping(
    blocks: Blocks,
    publication: PublicationLog,
    message: NDArray[np.uint8],
    content: NDArray[np.int64],
    latencies: NDArray[np.int64],
    interval_ns: int,
    pings: NDArray[Any],
    due: NDArray[np.int64],
    counts: NDArray[np.int64],
    turns: int,
    strategy: int,
) -> Found:
    """Send numbered messages, each after the echo of the previous one, at most one every
    `interval_ns` from the first echo on, and store how long each took.

    Shapes:  message uint8[n]; content int64[1, k], of every message; latencies int64[m] in
             nanoseconds; pings PING[1]; due int64[1], the number of the next echo; counts int64[1],
             echoes so far
    """
    state = pings[0]
    for _ in range(turns):
        if state.phase == WAITING:
            now_ns = monotonic_ns()
            is_paced = interval_ns > 0 and counts[0] > 0
            if is_paced and now_ns < state.due_ns + interval_ns:
                idle(strategy)
                continue
            if due[0] == latencies.size:
                return _OUT_OF_ROOM, latencies.size, 0
            state.due_ns = state.due_ns + interval_ns if is_paced else now_ns
            put_i64(message, 0, due[0])
            state.phase = DUE
        if state.phase == DUE:
            answer = offer(publication, message, 0, message.size, 0)
            if is_refused(answer):
                return _OFFER_REFUSED, counts[0], answer
            if answer < 0:
                idle(strategy)
                continue
            state.phase = SENT
        at, length = next_message(blocks)
        if length == 0:
            idle(strategy)
            continue
        fault, expected, found = check_next(blocks, at, length, due, message.size, content)
        if fault != OK:
            return fault, expected, found
        consume(blocks, length)
        # The frame may be padding.
        if due[0] > counts[0]:
            now_ns = monotonic_ns()
            latencies[counts[0]] = now_ns - state.due_ns
            # The first echo comes late if its pong was still being compiled. Messages are due from
            # then on.
            if counts[0] == 0:
                state.due_ns = now_ns
            counts[0] += 1
            state.phase = WAITING
    return OK, 0, 0


@kernel
def pong(
    blocks: Blocks,
    publication: PublicationLog,
    message_length: int,
    content: NDArray[np.int64],
    due: NDArray[np.int64],
    counts: NDArray[np.int64],
    turns: int,
    strategy: int,
) -> Found:
    """Send each message back. It is consumed when it was sent, because the driver may then
    overwrite it.

    Shapes:  content int64[1, k], of every message; due int64[1], the number of the next message;
             counts int64[1], echoes so far
    """
    for _ in range(turns):
        at, length = next_message(blocks)
        if length == 0:
            idle(strategy)
            continue
        # A message that was checked in an earlier turn has not been sent back yet.
        if due[0] == counts[0]:
            fault, expected, found = check_next(blocks, at, length, due, message_length, content)
            if fault != OK:
                return fault, expected, found
        # The frame may be padding.
        if due[0] > counts[0]:
            answer = offer(publication, blocks.log, at + DATA_HEADER_LENGTH, message_length, 0)
            if is_refused(answer):
                return _OFFER_REFUSED, counts[0], answer
            if answer < 0:
                idle(strategy)
                continue
            counts[0] += 1
        consume(blocks, length)
    return OK, 0, 0
