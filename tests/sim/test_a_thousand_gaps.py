"""The cost of a thousand open gaps for the driver's agents: processor time, and memory.

every second frame is lost once, and nothing is retransmitted --> 1,000 gaps of one frame each
"""

import resource
import time

import pytest

from tests.sim.stream_pair import (
    GAPS_OPEN,
    HWM,
    MS,
    NAKS_OUT,
    OLDEST_GAP,
    PUB_POS,
    SND_POS,
    TO_RECEIVER,
    StreamPair,
)
from tests.sim.test_receiving_side import kind_of
from windtunnel.driver.media_driver.context import Context
from windtunnel.driver.wire import frame_type

GAPS = 1_000
FRAME_LENGTH = 1_408
TURNS = 1_000
SHARE_OF_THRESHOLD = 50
"""A turn uses at most this fraction of the threshold for which the driver counts a long cycle."""


class HalfLostStream(StreamPair):
    """A stream of which every second frame is lost, and no NAK arrives at the sender."""

    def __init__(self, folder):
        self.frames = 0

        def impair(direction, datagram):
            if direction != TO_RECEIVER:
                return [] if kind_of(datagram) == frame_type.NAK else [datagram]
            is_data = kind_of(datagram) == frame_type.DATA and datagram.size >= FRAME_LENGTH
            self.frames += is_data
            return [] if is_data and self.frames % 2 else [datagram]

        super().__init__(folder, term_length=1 << 23, window=1 << 22, impair=impair, turn_ns=MS)
        while not self.has_image:
            self.turn()
        self.receiver.images[0]["is_nak_all_gaps"] = 1


@pytest.fixture(name="pair")
def pair_with_gaps(tmp_path):
    pair = HalfLostStream(tmp_path)
    while pair.value(GAPS_OPEN) < GAPS:
        for _ in range(4):
            pair.offer(bytes(FRAME_LENGTH - 32))
        pair.turn()
    while pair.value(SND_POS) < pair.value(PUB_POS):
        pair.turn()
    pair.turn()
    return pair


def test_a_turn_with_a_thousand_gaps_stays_below_the_threshold_of_long_cycles(pair, tmp_path):
    context = Context(dir=tmp_path / "aeron")
    taken_ns = []
    naks_before, gaps = pair.value(NAKS_OUT), pair.value(GAPS_OPEN)
    assert gaps >= GAPS
    for _ in range(TURNS):
        began_ns = time.thread_time_ns()
        pair.track(pair.conductor, pair.now_ns, pair.now_ns // MS)
        pair.receive(pair.receiver, pair.now_ns)
        taken_ns.append(time.thread_time_ns() - began_ns)
        pair.now_ns += MS
    # NAKs were sent meanwhile, and all gaps remain open.
    assert pair.value(NAKS_OUT) > naks_before
    assert pair.value(GAPS_OPEN) == gaps
    assert pair.value(OLDEST_GAP) >= TURNS * MS
    assert max(taken_ns) < context.conductor_cycle_threshold_ns // SHARE_OF_THRESHOLD


def test_turns_with_a_thousand_gaps_allocate_no_memory(pair):
    for _ in range(2):
        # The first turns touch pages for the first time.
        faults = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        for _ in range(TURNS):
            pair.track(pair.conductor, pair.now_ns, pair.now_ns // MS)
            pair.receive(pair.receiver, pair.now_ns)
            pair.now_ns += MS
        faults = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - faults
    assert faults < TURNS // 10
    assert pair.value(GAPS_OPEN) >= GAPS
    assert pair.value(HWM) >= GAPS * 2 * FRAME_LENGTH
