"""Outcomes of frames from two synthetic captures of a stream."""

import pytest

from tests.unit.harness.replay.synthetic_stream import (
    LENGTH,
    MS,
    NEAR,
    US,
    arrived,
    stream,
    summary,
)
from windtunnel.harness.artifact.middlebox.frame_class import SM
from windtunnel.harness.replay.frame_outcome import COPY, DROP, LATE
from windtunnel.harness.replay.two_captures import is_nearer, match, match_captures


@pytest.mark.parametrize("skew_ns", [0, 5_000 * MS, -5_000 * MS])
def test_frames_are_matched_despite_different_clocks(skew_ns):
    again = [(5 * MS, 3 * LENGTH), (9 * MS, 3 * LENGTH)]
    near = stream([*NEAR, *again])
    far = stream(arrived([*NEAR[:3], *NEAR[4:], again[1]], skew_ns=skew_ns))
    assert summary(match_captures(near, far)) == [(DROP, 3, 1), (DROP, 3, 2)]


def test_frames_that_all_arrive_in_order_have_no_outcome():
    assert match_captures(stream(NEAR), stream(arrived(NEAR))) == []


def test_a_late_frame_has_its_delay_and_the_number_that_overtook_it():
    held = (NEAR[5][0] + 350 * US, NEAR[5][1])
    far = stream(arrived([*NEAR[:5], held, *NEAR[6:]]))
    (outcome,) = match_captures(stream(NEAR), far)
    assert (outcome.what, outcome.position, outcome.attempt) == (LATE, 5 * LENGTH, 1)
    assert abs(outcome.delay_ns - 350 * US) < US
    assert outcome.overtaken_by == 3


def test_a_copy_has_its_delay():
    far = stream(arrived([*NEAR, (NEAR[5][0] + 70 * US, NEAR[5][1])]))
    (outcome,) = match_captures(stream(NEAR), far)
    assert (outcome.what, outcome.position, outcome.attempt, outcome.delay_ns) == (
        COPY,
        5 * LENGTH,
        1,
        70 * US,
    )


def test_a_frame_that_arrives_after_its_retransmit_is_late_and_not_lost():
    repair = (NEAR[5][0] + 20 * MS, NEAR[5][1])
    held = (NEAR[5][0] + 30 * MS, NEAR[5][1])
    far = stream(arrived([*NEAR[:5], *NEAR[6:], repair, held]))
    (outcome,) = match_captures(stream([*NEAR, repair]), far)
    assert (outcome.what, outcome.attempt) == (LATE, 1)


@pytest.mark.parametrize(
    ("departures", "arrivals", "wanted"),
    [
        ([0], [10], ([10], [])),
        ([0], [], ([None], [])),
        ([0, 100], [110], ([None, 110], [])),
        ([0, 100], [10], ([10, None], [])),
        ([0, 100], [10, 110], ([10, 110], [])),
        ([0], [10, 17], ([10], [(1, 7)])),
        ([0, 100], [10, 15, 110], ([10, 110], [(1, 5)])),
        ([0, 100], [110, 300], ([300, 110], [])),
    ],
)
def test_arrivals_are_matched_with_departures(departures, arrivals, wanted):
    assert match(departures, arrivals, base_ns=10, slack_ns=3) == wanted


@pytest.mark.parametrize("skew_ns", [0, 3_000 * MS, -3_000 * MS])
def test_the_sender_is_where_data_leaves_first_and_feedback_arrives_last(skew_ns):
    feedback = [(at * MS, SM, at * LENGTH, 0) for at in range(5)]
    later = [(time_ns + 40 * US, *rest) for time_ns, *rest in feedback]
    near = stream(NEAR, later)
    far = stream(
        arrived(NEAR, skew_ns=skew_ns),
        [(time_ns + skew_ns, *rest) for time_ns, *rest in feedback],
    )
    assert is_nearer(near, far)
    assert not is_nearer(far, near)
