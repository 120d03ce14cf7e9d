"""A reliable stream on a path of 250 ms that loses 5 % of its data, with NAKs for all gaps."""

import random
from collections import deque

import pytest

from tests.sim.stream_pair import MS, NAKS_OUT, TO_RECEIVER, StreamPair
from tests.sim.test_receiving_side import kind_of, messages_of
from windtunnel.driver.media import link
from windtunnel.driver.wire import frame_type

ONE_WAY_TURNS = 125
MESSAGE_LENGTH, MESSAGES_COUNT = 1_344, 1_200
ROUND_TRIP_NS = 250 * MS


def frames_in(datagram):
    """Return the number of messages of one frame in a datagram; a heartbeat has none."""
    return datagram.size // (MESSAGE_LENGTH + 32)


class LongPath(StreamPair):
    """Each datagram arrives 125 turns of 1 ms after it was sent, or is lost."""

    def __init__(self, folder, seed, *, nak_all_gaps):
        rng = random.Random(seed)
        self.under_way = deque()
        self.lost, self.frames = 0, 0

        def impair(direction, datagram):
            if direction == TO_RECEIVER and kind_of(datagram) == frame_type.DATA:
                count = frames_in(datagram)
                self.frames += count
                if count > 0 and rng.random() < 0.05:
                    self.lost += count
                    return []
            self.under_way.append((self.now_ns + ONE_WAY_TURNS * MS, direction, datagram))
            return []

        super().__init__(folder, term_length=1 << 20, window=1 << 18, impair=impair, turn_ns=MS)
        while not self.has_image:
            self.turn()
        self.receiver.images[0]["is_nak_all_gaps"] = int(nak_all_gaps)
        # Aeron's best setting for this path: a retry after the round trip.
        self.receiver.images[0]["nak_retry_ns"] = ROUND_TRIP_NS + 10 * MS

    def _carry(self, origin, direction):
        super()._carry(origin, direction)
        while self.under_way and self.under_way[0][0] <= self.now_ns:
            _, to, datagram = self.under_way.popleft()
            side = 1 if to == TO_RECEIVER else 0
            link.deliver(self.links, side, self.names[1 - side], 16, datagram, 0, datagram.size)


def transfer(folder, seed, *, nak_all_gaps):
    """Return (the pair after the transfer, its duration in round trips)."""
    folder.mkdir()
    pair = LongPath(folder, seed, nak_all_gaps=nak_all_gaps)
    messages = [bytes([i & 0xFF]) * MESSAGE_LENGTH for i in range(MESSAGES_COUNT)]
    begin_ns = pair.now_ns
    pair.publish(messages)
    assert messages_of(pair.received) == messages
    return pair, (pair.now_ns - begin_ns) / ROUND_TRIP_NS


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_window_of_gaps_takes_few_round_trips_and_few_naks(tmp_path, seed):
    pair, round_trips = transfer(tmp_path / "all", seed, nak_all_gaps=True)
    first, first_round_trips = transfer(tmp_path / "first", seed, nak_all_gaps=False)
    assert first.lost > 40
    assert round_trips < first_round_trips / 3
    # Adjacent losses share a NAK.
    assert 0 < pair.value(NAKS_OUT) <= pair.lost
    # Each DATA frame was sent once, and each lost frame was retransmitted once.
    frames = pair.frames - pair.lost
    assert frames <= MESSAGES_COUNT + 0.1 * pair.lost
