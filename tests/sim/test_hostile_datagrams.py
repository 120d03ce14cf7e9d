"""Tens of thousands of corrupted datagrams among valid ones: the stream stays intact.

good frame --flip bits, cut, lengthen--> delivered to both agents, repeatedly, while a stream runs
"""

import random

import numpy as np
import pytest

from tests.naive import wire
from tests.sim.stream_pair import (
    HWM,
    RCV_POS,
    SESSION_ID,
    SND_LMT,
    SND_POS,
    STREAM_ID,
    SUB_POS,
    TO_RECEIVER,
    TO_SENDER,
    StreamPair,
    deliver_all,
)
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import JIT_DISABLED
from windtunnel.driver.media_driver.agent import system_counters

TERM = 65_536
ROUNDS = 3 if JIT_DISABLED else 120
MESSAGES = [bytes([i & 0xFF]) * (1 + (i * 7919) % 5000) for i in range(ROUNDS * 3)]


def damaged(rng, datagram):
    """Return a copy with a few bits flipped, some bytes replaced, or another length."""
    copy = bytearray(datagram)
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(min(len(copy), 44))
        copy[at] = rng.choice([copy[at] ^ (1 << rng.randrange(8)), rng.randrange(256), 0, 0xFF])
    if rng.random() < 0.3:
        length = rng.choice([rng.randrange(len(copy) + 1), len(copy) + rng.randrange(1, 99)])
        copy = copy[:length].ljust(length, b"\xa5")
    return bytes(copy)


def could_reach_the_stream(datagram):
    """Return whether a datagram could be inserted into the stream, as a perfect forgery could."""
    if not wire.is_acceptable(datagram) or datagram[6] > wire.DATA:
        return False
    fields = np.frombuffer(datagram[8:24], "<i4")
    is_ours = (int(fields[1]), int(fields[2])) == (SESSION_ID, STREAM_ID)
    return is_ours and wire.reach(datagram, TERM) >= 0


def as_array(datagram):
    return np.frombuffer(datagram, np.uint8).copy()


def whole_messages(received):
    complete, part = [], b""
    for _, flags, payload in received:
        if flags < 0:
            continue
        part = payload if flags & 0x80 else part + payload
        if flags & 0x40:
            complete.append(part)
    return complete


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("seed", range(3))
def test_corrupted_frames_that_can_be_detected_change_nothing(tmp_path, seed):
    rng = random.Random(seed)
    injected = []

    def impair(direction, datagram):
        good, corrupted = datagram.tobytes(), []
        while len(corrupted) < 25:
            candidate = damaged(rng, good)
            is_setup = candidate[6:7] == bytes([wire.SETUP])
            if direction == TO_SENDER or not (could_reach_the_stream(candidate) or is_setup):
                corrupted.append(candidate)
        injected.extend(corrupted)
        cut = rng.randrange(len(corrupted) + 1)
        return [as_array(item) for item in (*corrupted[:cut], good, *corrupted[cut:])]

    pair = StreamPair(tmp_path, impair=impair)
    pair.publish(MESSAGES)
    assert whole_messages(pair.received) == MESSAGES
    end = pair.log.producer_position()
    assert [pair.value(i) for i in (SND_POS, RCV_POS, HWM, SUB_POS)] == [end] * 4
    pair.impair = deliver_all
    for _ in range(400):
        pair.turn()
    refused = sum(not wire.is_acceptable(item) for item in injected)
    assert pair.value(system_counters.INVALID_PACKETS) >= refused > len(injected) // 20
    assert len(injected) >= 100 * ROUNDS


@pytest.mark.parametrize("seed", range(3))
def test_no_forged_frame_corrupts_memory_or_counters(tmp_path, seed):
    """Forged data of the genuine session may corrupt what subscribers read, but nothing else."""
    rng = random.Random(100 + seed)

    def impair(direction, datagram):
        good = datagram.tobytes()
        corrupted = [damaged(rng, good) for _ in range(25)]
        if direction == TO_RECEIVER:
            corrupted = [item for item in corrupted if len(item) < 7 or item[6] != wire.SETUP]
        return [as_array(good), *map(as_array, corrupted)]

    pair = StreamPair(tmp_path, impair=impair)
    meta = pair.image_log.log[pair.image_log.meta_at + 256 : pair.image_log.meta_at + 512].copy()
    pair.poll = lambda: counters.set_release(pair.values, SUB_POS, pair.value(RCV_POS))
    for number in range(ROUNDS * 5):
        pair.offer(MESSAGES[number % len(MESSAGES)])
        before = [pair.value(i) for i in (SND_POS, SND_LMT, RCV_POS, HWM)]
        pair.turn()
        after = [pair.value(i) for i in (SND_POS, SND_LMT, RCV_POS, HWM)]
        assert all(new >= old for old, new in zip(before, after, strict=True))
        assert pair.value(SND_POS) <= pair.log.producer_position()
    kept = pair.image_log.log[pair.image_log.meta_at + 256 :][: meta.size]
    assert np.array_equal(kept, meta)
    assert pair.value(system_counters.INVALID_PACKETS) > 0
