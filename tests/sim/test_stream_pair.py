"""The sender's and the receiver's kernels exchange a stream over a deterministic link."""

import random
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from stream_pair import (
    HWM,
    NAKS_IN,
    NAKS_OUT,
    RCV_POS,
    SND_POS,
    SUB_POS,
    TO_RECEIVER,
    StreamPair,
)

from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.wire import frame_type, header

MESSAGES = [bytes([i & 0xFF]) * (1 + (i * 7919) % 5000) for i in range(200)]


def kind_of(datagram):
    return int(header.frame_type(np.frombuffer(bytes(datagram), np.uint8).copy(), 0))


def is_data(datagram):
    kind = kind_of(datagram)
    return kind in (frame_type.DATA, frame_type.PAD) and any(datagram[:4])


def messages_of(received):
    complete, part = [], b""
    for _, flags, payload in received:
        if flags < 0:
            continue
        part = payload if flags & 0x80 else part + payload
        if flags & 0x40:
            complete.append(part)
    return complete


def lossy(seed, share, kinds=None):
    rng = random.Random(seed)

    def impair(direction, datagram):
        if kinds is not None and kind_of(datagram) not in kinds:
            return [datagram]
        return [] if rng.random() < share else [datagram]

    return impair


@pytest.mark.parametrize("initial_term_id", [7, -3, 2_147_483_646])
def test_delivers_all_messages_across_term_rotations(tmp_path, initial_term_id):
    pair = StreamPair(tmp_path, initial_term_id=initial_term_id)
    pair.publish(MESSAGES)
    assert messages_of(pair.received) == MESSAGES
    end = pair.log.producer_position()
    assert [pair.value(i) for i in (SND_POS, RCV_POS, HWM, SUB_POS)] == [end] * 4
    assert end > 6 * 65_536


@pytest.mark.parametrize("seed", range(3))
def test_repairs_loss_in_both_directions(tmp_path, seed):
    pair = StreamPair(tmp_path, impair=lossy(seed, 0.05))
    pair.publish(MESSAGES)
    assert messages_of(pair.received) == MESSAGES
    assert pair.value(NAKS_OUT) > 0
    assert 0 < pair.value(NAKS_IN) <= pair.value(NAKS_OUT)
    assert pair.value(system_counters.RETRANSMITS_SENT) > 0


def test_an_unreliable_receiver_fills_lost_ranges_with_padding(tmp_path):
    lost = []
    rng = random.Random(5)

    def impair(direction, datagram):
        if direction == TO_RECEIVER and is_data(datagram) and rng.random() < 0.03:
            lost.append(bytes(datagram))
            return []
        return [datagram]

    pair = StreamPair(tmp_path, impair=impair, reliable=False, window=16_384)
    pair.publish(MESSAGES)
    assert lost
    assert not [d for _, d in pair.wire if kind_of(d) == frame_type.NAK]
    assert pair.value(system_counters.LOSS_GAP_FILLS) > 0
    assert pair.value(system_counters.FLOW_CONTROL_OVER_RUNS) == 0
    positions = [at for at, _, _ in pair.received]
    assert positions == sorted(positions)
    assert pair.value(SUB_POS) == pair.log.producer_position()


def test_a_lost_tail_is_repaired_by_the_heartbeat(tmp_path):
    dropped = []

    def impair(direction, datagram):
        if direction == TO_RECEIVER and is_data(datagram) and not dropped:
            dropped.append(datagram)
            return []
        return [datagram]

    pair = StreamPair(tmp_path, impair=impair)
    pair.publish([b"only one"])
    assert dropped
    assert messages_of(pair.received) == [b"only one"]


def test_random_datagrams_do_not_affect_the_stream(tmp_path):
    rng = random.Random(11)

    def impair(direction, datagram):
        random_datagram = np.frombuffer(rng.randbytes(rng.randrange(1, 200)), np.uint8).copy()
        return [random_datagram, datagram] if rng.random() < 0.5 else [datagram, random_datagram]

    pair = StreamPair(tmp_path, impair=impair)
    pair.publish(MESSAGES[:60])
    assert messages_of(pair.received) == MESSAGES[:60]
    assert pair.value(system_counters.INVALID_PACKETS) > 0


def test_duplicates_and_swaps_change_nothing(tmp_path):
    held = []

    def impair(direction, datagram):
        if direction != TO_RECEIVER:
            return [datagram]
        if held:
            return [datagram, held.pop(), datagram]
        held.append(datagram)
        return [] if is_data(datagram) else [held.pop()]

    pair = StreamPair(tmp_path, impair=impair)
    pair.publish(MESSAGES)
    assert messages_of(pair.received) == MESSAGES


def test_equal_impairments_give_equal_traffic(tmp_path):
    wires = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        pair = StreamPair(tmp_path / name, impair=lossy(3, 0.05))
        pair.publish(MESSAGES[:80])
        wires.append(pair.wire)
    assert wires[0] == wires[1]
