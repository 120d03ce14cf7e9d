"""`when`, `until` and `attempt` as documented, in the engine and its reference implementation.

Both implementations might share an error, so the expectations are written down from the
documentation.
"""

import pytest

from tests.naive.middlebox import NaiveMiddlebox
from tests.unit.harness.middlebox.synthetic_case import (
    A_TO_B,
    ENVELOPE,
    ByteEngine,
    case,
    data,
    fault,
    setup,
    with_more,
)
from windtunnel.harness.middlebox.engine.state import DATAGRAMS_ADDED, HOLD_OVERFLOWS
from windtunnel.harness.scenario.resolved.fault_case import CountCase, ReachedCase, WhenCase

MS = 1_000_000
S = 1000 * MS


class Twin:
    """The reference implementation, driven like the engine."""

    def __init__(self, for_case):
        self.naive = NaiveMiddlebox(for_case)

    def frames(self, datagram, link=A_TO_B, now_ns=0):
        first = len(self.naive.sent)
        self.naive.offer(ENVELOPE, datagram, link, now_ns)
        return [sent[2] for sent in self.naive.sent[first:]]

    def release(self, now_ns):
        first = len(self.naive.sent)
        self.naive.release(now_ns)
        return self.naive.sent[first:]


BOTH = pytest.mark.parametrize("driver", [ByteEngine, Twin])


def after_a_point(position=6400, **window):
    """A rule that drops SETUP frames in a window that starts when the stream reaches a position."""
    when = WhenCase(reached=ReachedCase(ordinal=0, position=position), **window)
    return with_more(fault("drop", types=("SETUP",)), when=when)


@BOTH
@pytest.mark.parametrize(
    ("window", "is_struck_at"),
    [
        ({"for_ns": 1 * S}, {2.5: True, 3.5: False, 30.0: False}),
        ({"after_ns": 5 * S, "for_ns": 1 * S}, {2.5: False, 7.5: True, 8.5: False}),
        ({"for_ns": 1 * S, "every_ns": 10 * S}, {7.0: False, 12.5: True, 13.5: False}),
        ({}, {2.5: True, 30.0: True}),
    ],
)
def test_time_counts_from_when_the_stream_reached_the_position(driver, window, is_struck_at):
    """It reaches it at 2 s, whatever the first frame is that the rule applies to."""
    for at_s, is_struck in is_struck_at.items():
        driven = driver(case(after_a_point(**window)))
        assert driven.frames(setup(), now_ns=S // 2) == [setup()]
        driven.frames(data(0), now_ns=1 * S)
        driven.frames(data(6400 - 64), now_ns=2 * S)
        found = driven.frames(setup(), now_ns=int(at_s * S))
        assert found == ([] if is_struck else [setup()]), at_s


@BOTH
def test_time_counts_although_another_rule_matched_first(driver):
    """The second rule is not evaluated while the first one matches, but its time starts all the
    same."""
    first = with_more(fault("drop", types=("SETUP",), name="first"), order=CountCase(first=2))
    first = with_more(first, order=CountCase(first=2, last=2))
    second = with_more(after_a_point(for_ns=1 * S), id="second")
    driven = driver(case(first, second))
    assert driven.frames(setup(), now_ns=S // 2) == [setup()]
    driven.frames(data(6400), now_ns=2 * S)
    assert driven.frames(setup(), now_ns=2 * S + 1) == []
    assert driven.frames(setup(), now_ns=4 * S) == [setup()]


@BOTH
def test_a_stream_that_reaches_the_position_again_does_not_restart_the_time(driver):
    driven = driver(case(after_a_point(for_ns=1 * S)))
    driven.frames(setup(), now_ns=S // 2)
    driven.frames(data(6400), now_ns=2 * S)
    driven.frames(data(6400), now_ns=9 * S)
    driven.frames(data(12_800), now_ns=9 * S)
    assert driven.frames(setup(), now_ns=9 * S + 1) == [setup()]


@BOTH
def test_a_position_that_no_frame_reached_starts_no_time(driver):
    driven = driver(case(after_a_point(position=0)))
    assert driven.frames(setup(), now_ns=1 * S) == [setup()]
    driven.frames(data(0), now_ns=2 * S)
    assert driven.frames(setup(), now_ns=2 * S) == []


def copies(ending, value=0, count=1):
    """A rule that duplicates the frame at position 0 on its first transmission."""
    made = fault("duplicate", hold_ns=5 * S)
    made = with_more(made, copies=count, ending=ending, ending_value=value)
    return with_more(made, flags_mask=0xFF, flags_value=0x80)


def marked(position=0):
    """A DATA frame that only the rule of `copies` applies to."""
    frame = bytearray(data(position))
    frame[5] = 0x80
    return bytes(frame)


@BOTH
@pytest.mark.parametrize(
    ("ending", "value", "before", "freeing"),
    [
        ("frames", 1, [], 64),
        ("frames", 3, [64, 128], 192),
        ("advance", 64, [], 64),
        ("advance", 32, [], 64),
        ("repeated", 0, [64, 128], 0),
        ("consumed", 0, [64], None),
    ],
)
@pytest.mark.parametrize("count", [1, 3])
def test_a_copy_is_not_released_by_its_own_original(driver, ending, value, before, freeing, count):
    driven = driver(case(copies(ending, value, count)))
    driven.frames(setup())
    assert driven.frames(marked()) == [marked()]
    for position in before:
        assert driven.frames(data(position)) == [data(position)]
    if freeing is None:
        assert len(driven.release(5 * S)) == count
    else:
        assert driven.frames(data(freeing)) == [data(freeing)] + [marked()] * count


@BOTH
def test_an_earlier_copy_is_released_by_the_next_frame_that_is_copied(driver):
    driven = driver(case(copies("frames", 1)))
    driven.frames(setup())
    assert driven.frames(marked()) == [marked()]
    assert driven.frames(marked(64)) == [marked(64), marked()]
    assert driven.frames(data(128)) == [data(128), marked(64)]


@BOTH
@pytest.mark.parametrize("kind", [0, 1])
def test_a_frame_of_unknown_attempt_is_not_a_retransmission(driver, kind):
    """Before its session's SETUP the attempt of a frame is unknown."""
    for counted in (CountCase(first=2), CountCase(last=1), CountCase(every=2)):
        chosen = with_more(fault("drop", types=("DATA", "PAD")), attempt=counted)
        frame = data(64, kind=kind)
        driven = driver(case(chosen))
        assert driven.frames(frame) == [frame]
    driven = driver(case(fault("drop", types=("DATA", "PAD"))))
    assert driven.frames(data(64, kind=kind)) == []


@BOTH
def test_frames_without_attempts_match_whatever_attempts_a_rule_selects(driver):
    chosen = with_more(fault("drop", types=("DATA", "SETUP")), attempt=CountCase(first=2))
    driven = driver(case(chosen))
    assert driven.frames(setup()) == []


def test_copies_that_do_not_all_fit_are_not_kept():
    """The frame passes as if no rule had matched, so the accounts stay balanced."""
    driven = ByteEngine(case(with_more(fault("duplicate", hold_ns=5 * S), copies=4)))
    driven.frames(setup())
    slots = len(driven.engine.held.records)
    assert slots % 4 == 0
    for index in range(slots // 4 - 1):
        driven.frames(data(64 * index))
    driven.engine.held.counts[1] -= 1
    assert driven.frames(data(0)) == [data(0)]
    assert driven.engine.state[HOLD_OVERFLOWS] == 1
    assert driven.engine.datagrams[A_TO_B, DATAGRAMS_ADDED] == slots - 4
    assert len(driven.decisions) == slots // 4 - 1
    assert len(driven.release(9 * S)) == slots - 4
