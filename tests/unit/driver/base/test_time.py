"""Clocks and idle strategies."""

import time

import pytest

from windtunnel.driver.base import idle, system
from windtunnel.driver.base.clock import ManualClock, SystemClock


def test_the_system_clock_reads_the_clocks_of_the_machine() -> None:
    clock = SystemClock()
    before, before_ms = time.monotonic_ns(), time.time_ns() // 1_000_000
    now, now_ms = clock.now_ns(), clock.now_ms()
    assert before <= now <= time.monotonic_ns()
    assert before_ms <= now_ms <= time.time_ns() // 1_000_000


def test_a_manual_clock_advances_on_request_in_whole_milliseconds() -> None:
    clock = ManualClock(monotonic_ns=500_000, epoch_ms=7)
    clock.advance(499_999)
    assert (clock.now_ns(), clock.now_ms()) == (999_999, 7)
    clock.advance(1)
    assert (clock.now_ns(), clock.now_ms()) == (1_000_000, 8)
    clock.advance(5_000_000)
    assert (clock.now_ns(), clock.now_ms()) == (6_000_000, 13)


def test_sleeping_takes_at_least_as_long() -> None:
    before = time.monotonic_ns()
    system.sleep_ns(2_000_000)
    assert time.monotonic_ns() - before >= 2_000_000
    system.yield_cpu()


@pytest.mark.parametrize("descriptor", [-1, 1_000_000])
def test_a_failed_call_returns_the_negative_errno(descriptor: int) -> None:
    bad_descriptor = -9
    assert system.send(descriptor, 0, 0, 0) == bad_descriptor
    assert system.sendto(descriptor, 0, 0, 0, 0, 0) == bad_descriptor
    assert system.sendmmsg(descriptor, 0, 0, 0) == bad_descriptor
    assert system.recvmmsg(descriptor, 0, 0, 0) == bad_descriptor
    assert system.poll(0, 0, 0) == 0


def test_backing_off_yields_then_sleeps_longer() -> None:
    state = idle.make_idle(park_ns_max=4_000)
    for _ in range(60):
        idle.after_turn(state, 0)
        state[0].lateness = 0  # On a busy machine, yields are late.
    assert state[0].park_ns == 1_000
    for expected in (2_000, 4_000, 4_000):
        idle.after_turn(state, 0)
        assert state[0].park_ns == expected
    idle.after_turn(state, 1)
    assert (state[0].misses, state[0].park_ns) == (0, 1_000)


@pytest.mark.parametrize("mode", [idle.SPIN, idle.YIELD, idle.SLEEP])
def test_other_strategies_never_lengthen_their_sleep(mode: int) -> None:
    state = idle.make_idle(mode, park_ns_min=1)
    for _ in range(40):
        idle.after_turn(state, 0)
    assert (state[0].misses, state[0].park_ns) == (40, 1)


def test_spins_and_yields_before_the_first_sleep_are_counted() -> None:
    state = idle.make_idle(spins_max=2, yields_max=1, park_ns_min=1, park_ns_max=8)
    for _ in range(3):
        idle.after_turn(state, 0)
    assert state[0].park_ns == 1
    idle.after_turn(state, 0)
    assert state[0].park_ns == 2


def test_a_sleep_until_an_event_ends_at_that_event_and_not_before_the_shortest_sleep() -> None:
    minute_ns = 60 * system.NS_PER_SECOND
    for limit_ns in (1_000, 0, -5):
        state = idle.make_idle(yields_max=0, park_ns_min=1, park_ns_max=minute_ns)
        state[0].park_ns = minute_ns
        began_ns = system.monotonic_ns()
        idle.until(state, 0, limit_ns)
        assert system.monotonic_ns() - began_ns < minute_ns // 2
        assert state[0].misses == 1
    idle.until(state, 1, 0)
    assert (state[0].misses, state[0].park_ns) == (0, 1)


def test_an_agent_whose_yields_are_late_sleeps_at_once() -> None:
    state = idle.make_idle(park_ns_max=300_000)
    rec = state[0]
    late_ns, soon_ns = 4_000_000, 1_000
    for length_ns in (late_ns, soon_ns) * 6:
        idle.add_yield(rec, length_ns)
    assert (rec.lateness, rec.sleeps_left) == (12, 0)
    assert idle.park_ns(state, 0) == idle.NO_PARK
    idle.add_yield(rec, late_ns)
    idle.add_yield(rec, late_ns)
    assert (rec.lateness, rec.sleeps_left) == (15, 1_000)
    assert [idle.park_ns(state, 0) for _ in range(3)] == [200_000, 300_000, 300_000]
    idle.park_ns(state, 1)
    assert [idle.park_ns(state, 0) for _ in range(997)] == [200_000] + [300_000] * 996
    idle.park_ns(state, 1)
    assert idle.park_ns(state, 0) == idle.NO_PARK


def test_an_agent_that_tried_to_yield_again_stops_after_one_late_yield() -> None:
    rec = idle.make_idle()[0]
    rec.lateness = idle.LATENESS_MAX - 1
    for _ in range(2):
        idle.add_yield(rec, 1_000)
    idle.add_yield(rec, 1_999_999)
    assert (rec.lateness, rec.sleeps_left) == (12, 0)
    rec.lateness += 1
    idle.add_yield(rec, 2_000_000)
    assert (rec.lateness, rec.sleeps_left) == (15, 1_000)


def test_yields_in_time_outweigh_a_few_late_ones() -> None:
    rec = idle.make_idle()[0]
    for _ in range(100):
        for length_ns in (5_000_000, 1_000, 1_000, 1_000):
            idle.add_yield(rec, length_ns)
    assert (rec.lateness, rec.sleeps_left) == (0, 0)
