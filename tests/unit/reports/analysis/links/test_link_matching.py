"""Passages at two points are matched, which shows lost, copied, late and unsent frames."""

import numpy as np
import pytest

from windtunnel.reports.analysis.links.join import OBSERVATION
from windtunnel.reports.analysis.links.link_matching import LOST, match

WAY_NS = 50_000
APART_NS = 10_000


def passages(*rows):
    """Make passages of pairs (position, time in ns)."""
    made = np.zeros(len(rows), dtype=OBSERVATION)
    made["position"] = [row[0] * 32 for row in rows]
    made["time_ns"] = [row[1] for row in rows]
    made["length"] = 32
    return made


def stream(count, first=0):
    return [(index, index * APART_NS) for index in range(first, first + count)]


def arriving(sends, way_ns=WAY_NS):
    return [(position, time_ns + way_ns) for position, time_ns in sends]


def test_all_that_is_sent_arrives():
    sends = stream(50)
    hop = match(passages(*sends), passages(*arriving(sends)), 0)
    assert (hop.arrival_of == np.arange(50)).all()
    assert (hop.delays_ns == WAY_NS).all()
    assert not hop.extents.any()
    assert not hop.is_copy.any()


def test_a_clock_offset_is_subtracted():
    sends = stream(5)
    hop = match(passages(*sends), passages(*arriving(sends, WAY_NS + 10**9)), 10**9)
    assert (hop.delays_ns == WAY_NS).all()


def test_nothing_arrives_and_nothing_was_sent():
    hop = match(passages(*stream(3)), passages(), 0)
    assert (hop.arrival_of == LOST).all()
    hop = match(passages(), passages(*stream(3)), 0)
    assert (hop.send_of == LOST).all()


def test_the_arrival_is_matched_with_the_retransmission_of_a_lost_frame():
    sends = [*stream(100), (50, 1_000_000 + 5_000)]
    hop = match(passages(*sends), passages(*arriving(sends[:50] + sends[51:])), 0)
    assert hop.arrival_of[50] == LOST
    assert hop.arrival_of[100] == 99
    assert (hop.arrival_of == LOST).sum() == 1


def test_the_later_of_two_arrivals_is_the_delayed_original():
    sends = [*stream(300), (50, 1_500_000)]
    sends.sort(key=lambda each: each[1])
    second_send = sends.index((50, 1_500_000))
    arrivals = arriving([*sends[:50], *sends[51:]])
    arrivals.append((50, 2_500_000))
    arrivals.sort(key=lambda each: each[1])
    hop = match(passages(*sends), passages(*arrivals), 0)
    assert hop.arrival_of[50] == arrivals.index((50, 2_500_000))
    assert hop.arrival_of[second_send] == arrivals.index((50, 1_500_000 + WAY_NS))
    assert hop.delays_ns[50] == 2_000_000
    late = arrivals.index((50, 2_500_000))
    assert hop.extents[late] == late - 50
    assert np.flatnonzero(hop.extents).tolist() == [late]


@pytest.mark.parametrize("copied_elsewhere", [False, True])
def test_an_arrival_just_after_another_is_a_copy_only_if_the_link_makes_copies(
    copied_elsewhere,
):
    sends = [*stream(200), (50, 3_000_000)]
    arrivals = [*arriving([*sends[:50], *sends[51:200]]), (50, 3_050_000), (50, 3_050_900)]
    if copied_elsewhere:
        sends.insert(150, (150, 1_499_000))
        arrivals.insert(10, arrivals[9])
    hop = match(passages(*sends), passages(*arrivals), 0)
    assert bool(hop.is_copy[-1]) == copied_elsewhere
    assert bool(hop.arrival_of[50] == LOST) == copied_elsewhere


def test_extents_count_the_frames_that_overtook_a_late_one():
    sends = stream(20)
    arrivals = arriving(sends)
    arrivals[3:7] = [*arrivals[4:7], (3, arrivals[6][1] + 1)]
    hop = match(passages(*sends), passages(*arrivals), 0)
    assert hop.extents[6] == 3
    assert hop.late_ns[6] == arrivals[6][1] - arrivals[3][1]
    assert np.count_nonzero(hop.extents) == 1


def test_copies_are_counted_where_they_were_sent():
    sends = stream(10)
    arrivals = arriving(sends)
    arrivals[4:4] = [arrivals[3], arrivals[3]]
    hop = match(passages(*sends), passages(*arrivals), 0)
    assert hop.copies.tolist() == [0, 0, 0, 2, 0, 0, 0, 0, 0, 0]
    assert np.flatnonzero(hop.is_copy).tolist() == [4, 5]


def test_an_arrival_that_was_never_sent_has_no_send():
    hop = match(passages(*stream(4)), passages(*arriving(stream(4)), (77, 10**6)), 0)
    assert hop.send_of.tolist() == [0, 1, 2, 3, LOST]
