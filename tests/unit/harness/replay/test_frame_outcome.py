"""Outcomes of frames, from one synthetic capture of a stream."""

import pytest

from tests.unit.harness.replay.synthetic_stream import LENGTH, MS, NEAR, US, stream, summary
from windtunnel.harness.artifact.middlebox.frame_class import NAK
from windtunnel.harness.replay.frame_outcome import (
    COPY,
    DROP,
    LATE,
    FrameOutcome,
    infer_outcomes,
    repeatable,
)
from windtunnel.harness.replay.observed import act_of


def nak(time_ns, index, count=1):
    return time_ns, NAK, index * LENGTH, count * LENGTH


def test_at_the_receiver_a_requested_gap_is_a_loss():
    passages = [*NEAR[:5], *NEAR[6:], (4 * MS, 5 * LENGTH)]
    assert summary(infer_outcomes(stream(passages, [nak(MS, 5)]))) == [(DROP, 5, 1)]


def test_at_the_receiver_a_gap_without_a_nak_is_a_late_frame():
    late = (NEAR[5][0] + 250 * US, 5 * LENGTH)
    (outcome,) = infer_outcomes(stream([*NEAR[:5], *NEAR[6:], late]))
    assert (outcome.what, outcome.attempt, outcome.overtaken_by) == (LATE, 1, 2)
    assert outcome.delay_ns == 150 * US


def test_at_the_receiver_a_second_round_of_naks_shows_a_lost_retransmit():
    passages = [*NEAR[:5], *NEAR[6:7], *NEAR[8:], (3 * MS, 7 * LENGTH), (9 * MS, 5 * LENGTH)]
    naks = [nak(2 * MS, 5), nak(2 * MS + 9, 7), nak(2 * MS + 10 * US, 5), nak(8 * MS, 5)]
    assert summary(infer_outcomes(stream(passages, naks))) == [
        (DROP, 5, 1),
        (DROP, 5, 2),
        (DROP, 7, 1),
    ]


def test_at_the_receiver_a_nak_that_crosses_the_retransmit_is_not_a_second_loss():
    passages = [*NEAR[:5], *NEAR[6:7], *NEAR[8:], (3 * MS, 7 * LENGTH), (3 * MS, 5 * LENGTH)]
    naks = [nak(2 * MS + 1, 5), nak(2 * MS + 1, 7), nak(3 * MS + 1, 5), nak(3 * MS + 1, 7)]
    assert summary(infer_outcomes(stream(passages, naks))) == [(DROP, 5, 1), (DROP, 7, 1)]


def test_at_the_sender_each_nak_with_its_retransmit_is_a_loss():
    passages = [*NEAR, (4 * MS, 5 * LENGTH), (9 * MS, 5 * LENGTH)]
    naks = [nak(3 * MS, 4, 3), nak(8 * MS, 5)]
    assert summary(infer_outcomes(stream(passages, naks))) == [(DROP, 5, 1), (DROP, 5, 2)]


def test_a_retransmit_at_the_time_of_its_nak_is_a_retransmit():
    passages = [*NEAR, (4 * MS, 5 * LENGTH)]
    assert summary(infer_outcomes(stream(passages, [nak(4 * MS + 1, 5)]))) == [(DROP, 5, 1)]


def test_at_the_sender_a_nak_that_crosses_the_retransmit_is_not_a_second_loss():
    """The round trip is 2 ms: the second NAK was sent before the retransmit could arrive."""
    passages = [*NEAR, (2600 * US, 5 * LENGTH), (3600 * US, 5 * LENGTH)]
    naks = [nak(2600 * US, 5), nak(3600 * US, 5)]
    assert summary(infer_outcomes(stream(passages, naks))) == [(DROP, 5, 1)]
    naks.append(nak(4700 * US, 5))
    assert summary(infer_outcomes(stream(passages, naks))) == [(DROP, 5, 1), (DROP, 5, 2)]


def test_at_the_receiver_a_second_retransmit_that_was_requested_is_not_a_copy():
    passages = [*NEAR[:5], *NEAR[6:], (4 * MS, 5 * LENGTH), (5 * MS, 5 * LENGTH)]
    naks = [nak(2 * MS, 5), nak(3 * MS, 5)]
    assert summary(infer_outcomes(stream(passages, naks))) == [(DROP, 5, 1)]


def repaired(waits):
    """Return passages and NAKs of lost frames. Each frame arrives 2 ms after a NAK: the one that is
    sent `waits[index]` ms after the first. NAKs are repeated every 2 ms until the frame arrives.
    """
    passages, naks = list(NEAR), []
    for index, wait in enumerate(waits):
        frame, start = 30 + 2 * index, (100 + 200 * index) * MS
        passages += [(start, (frame + 1) * LENGTH), (start + (wait + 3) * MS, frame * LENGTH)]
        naks += [nak(start + at * MS, frame) for at in range(1, wait + 2, 2)]
    # Frames between the early ones and the gaps.
    passages += [(90 * MS + at, at * LENGTH) for at in range(20, 30)]
    return passages, naks


def lost_at(waits):
    """Return how often each frame of `repaired` was lost."""
    found = summary(infer_outcomes(stream(*repaired(waits))))
    return [sum(frame == 30 + 2 * index for _, frame, _ in found) for index in range(len(waits))]


def test_naks_repeated_before_the_retransmit_could_arrive_are_not_losses():
    """The sender ignores NAKs for 60 ms after a retransmit, which the receiver does not know."""
    assert lost_at([0] * 8 + [60]) == [1] * 8 + [2]
    assert lost_at([0] * 8 + [60, 60, 60, 120]) == [1] * 8 + [2, 2, 2, 3]


def test_each_nak_without_a_response_is_a_lost_transmission_if_such_waits_are_usual():
    assert lost_at([0] * 8 + [2, 2, 2, 4]) == [1] * 8 + [2, 2, 2, 3]


def test_a_short_wait_is_a_lost_nak_if_the_sender_is_known_to_ignore_naks():
    """The sender ignored 30 NAKs in the long wait, so it would have ignored those after a short
    wait. If it ignored only a few, their retransmits may all have been lost.
    """
    assert lost_at([0] * 16 + [2] * 4 + [60]) == [1] * 16 + [1] * 4 + [2]
    assert lost_at([0] * 16 + [2] * 4 + [8]) == [1] * 16 + [2] * 4 + [4]


def test_a_gap_that_is_never_filled_is_not_a_loss_for_each_nak():
    naks = [nak((3 + at) * MS, 5) for at in range(50)]
    assert summary(infer_outcomes(stream([*NEAR[:5], *NEAR[6:]], naks))) == [
        (DROP, 5, 1),
        (DROP, 5, 2),
    ]


def test_identifications_distinguish_a_copy_from_a_retransmit():
    numbers = [*range(1, 21), 6, 21]
    again = [*NEAR, (4 * MS, 5 * LENGTH), (5 * MS, 5 * LENGTH)]
    found = infer_outcomes(stream(again, [nak(3 * MS, 5)], numbers))
    assert summary(found) == [(COPY, 5, 1), (DROP, 5, 1)]


@pytest.mark.parametrize(("number", "what"), [(6, LATE), (21, DROP)])
def test_identifications_distinguish_a_late_frame_from_another_members_retransmit(number, what):
    numbers = [*range(1, 6), *range(7, 21), number]
    passages = [*NEAR[:5], *NEAR[6:], (4 * MS, 5 * LENGTH)]
    (outcome,) = infer_outcomes(stream(passages, numbers=numbers, in_group=True))
    assert (outcome.what, outcome.attempt) == (what, 1)


def test_only_outcomes_of_requested_attempts_can_be_repeated():
    outcomes = [
        FrameOutcome(DROP, "DATA", 0, 64, 1), FrameOutcome(LATE, "DATA", 0, 64, 2),
        FrameOutcome(COPY, "DATA", 0, 64, 3), FrameOutcome(DROP, "DATA", 64, 64, 2),
        FrameOutcome(DROP, "DATA", 128, 64, 1), FrameOutcome(DROP, "DATA", 128, 64, 3),
    ]  # fmt: skip
    assert repeatable(outcomes) == ([*outcomes[:3], outcomes[4]], 2)


def test_a_second_arrival_without_a_nak_is_a_copy():
    (outcome,) = infer_outcomes(stream([*NEAR, (NEAR[5][0] + 9 * US, 5 * LENGTH)]))
    assert (outcome.what, outcome.attempt, outcome.delay_ns) == (COPY, 1, 9 * US)


def test_a_gap_that_is_never_filled_is_a_loss():
    assert [tuple(each) for each in infer_outcomes(stream([*NEAR[:5], *NEAR[7:]]))] == [
        (DROP, "DATA", 5 * LENGTH, 2 * LENGTH, 1, 0, 0)
    ]


@pytest.mark.parametrize(
    ("outcome", "act"),
    [
        (FrameOutcome(DROP, "DATA", 0, 64, 1), {"drop": "always"}),
        (
            FrameOutcome(LATE, "DATA", 0, 64, 1, 900 * US, 7),
            {"displace": {"share": "always", "by": 7}},
        ),
        (
            FrameOutcome(LATE, "DATA", 0, 64, 1, 3 * MS + 4_900, 7),
            {"hold": {"share": "always", "for": "3ms"}},
        ),
        (FrameOutcome(COPY, "DATA", 0, 64, 1, 900 * US), {"duplicate": "always"}),
        (
            FrameOutcome(COPY, "DATA", 0, 64, 1, 2 * MS),
            {"duplicate": {"share": "always", "for": "2ms"}},
        ),
        (
            FrameOutcome(LATE, "DATA", 0, 64, 1, 60_000 * MS, 7),
            {"hold": {"share": "always", "for": "10s"}},
        ),
    ],
)
def test_an_act_reproduces_an_outcome(outcome, act):
    assert act_of(outcome, step_ns=10_000) == act
