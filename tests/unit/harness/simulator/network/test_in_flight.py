"""Rings of datagrams in flight, compared with lists: wrapped, full, and with held frames."""

import random

import numpy as np
import pytest

from tests.naive.in_flight import Wire
from tests.unit.harness.middlebox.synthetic_case import case, fault
from windtunnel.harness.middlebox.engine.state import make_engine
from windtunnel.harness.simulator.network import in_flight
from windtunnel.harness.simulator.network.in_flight import (
    ENVELOPE_LENGTH,
    HEAD,
    HELD_BYTES_MAX,
    NEVER,
    NOTHING,
    OVERFLOWED,
    TAIL,
    WIRE_BYTES,
)

RECORD_MAX = 16 + ENVELOPE_LENGTH + 700 + 8
"""Length of the longest datagram here; a ring that wraps leaves less than that unused."""
LINKS = 3


def arrived(wires, link, now_ns):
    """Take the datagrams that are due, as the world's kernel does."""
    found = []
    while in_flight.due_ns(wires, link, at := in_flight.next_at(wires, link)) <= now_ns:
        begin, length = in_flight.envelope_at(at), in_flight.length_of(wires, link, at)
        whole = wires.memory[link, begin : begin + ENVELOPE_LENGTH + length]
        found.append((int(in_flight.due_ns(wires, link, at)), whole.tobytes()))
        in_flight.take(wires, link, at)
    return found


def put(wires, link, due_ns, datagram):
    buf = np.frombuffer(b"??" + datagram, dtype=np.uint8)
    length = len(datagram) - ENVELOPE_LENGTH
    return in_flight.put(wires, link, due_ns, buf, 2, ENVELOPE_LENGTH, length)


@pytest.mark.parametrize("seed", range(5))
def test_keeps_bytes_and_order_of_each_link(seed):
    chance = random.Random(seed)
    wires, twins = in_flight.make_wires(LINKS, 4_096), [Wire() for _ in range(LINKS)]
    now_ns, refused, furthest = 0, [0] * LINKS, np.zeros(LINKS, dtype=np.int64)
    for _ in range(6_000):
        now_ns += chance.randint(0, 10)
        link = chance.randrange(LINKS)
        if chance.random() < 0.6:
            datagram = chance.randbytes(ENVELOPE_LENGTH + chance.randint(0, 700))
            was_empty = wires.ends[link, HEAD] == wires.ends[link, TAIL]
            if put(wires, link, now_ns + 100, datagram):
                assert not was_empty or wires.ends[link, HEAD] == 0
                furthest = np.maximum(furthest, wires.ends[:, TAIL])
                twins[link].put(now_ns + 100, datagram)
            else:
                refused[link] += 1
                assert twins[link].used + RECORD_MAX + RECORD_MAX > 4_096
        else:
            assert arrived(wires, link, now_ns) == twins[link].arrived(now_ns)
    for link in range(LINKS):
        assert arrived(wires, link, NEVER - 1) == twins[link].arrived(NEVER)
    assert (wires.ends[:, HEAD] == wires.ends[:, TAIL]).all()
    assert (furthest > 2 * 4_096).all()
    assert wires.ends[:, OVERFLOWED].tolist() == refused
    assert all(refused)


@pytest.mark.parametrize("seed", range(3))
def test_datagrams_depart_in_order_and_held_ones_apart(seed):
    chance = random.Random(seed)
    wires, twins = in_flight.make_wires(LINKS, 256), [Wire() for _ in range(LINKS)]
    now_ns = 1_000
    for _ in range(300):
        now_ns += chance.choice((0, 0, 0, 5, 20, 500))
        link, apart_ns = chance.randrange(LINKS), chance.choice((0, 0, 10))
        departs_ns = in_flight.depart(wires, link, now_ns, apart_ns)
        assert departs_ns == twins[link].depart(now_ns, apart_ns)
    assert all(each.departures == sorted(each.departures) for each in twins)


def test_a_swapped_datagram_departs_after_its_predecessor_and_delays_its_successor():
    wires = in_flight.make_wires(1, 256)
    assert [in_flight.depart(wires, 0, 100, apart_ns) for apart_ns in (0, 10, 0)] == [100, 110, 110]
    assert in_flight.depart(wires, 0, 105, 0) == 110
    assert in_flight.depart(wires, 0, 200, 10) == 200


def test_nothing_is_due_in_an_empty_ring():
    wires = in_flight.make_wires(2, 256)
    assert in_flight.next_at(wires, 1) == NOTHING
    assert in_flight.due_ns(wires, 1, NOTHING) == NEVER
    assert in_flight.is_empty(wires)
    put(wires, 1, 7, bytes(ENVELOPE_LENGTH))
    assert in_flight.next_due_ns(wires, 1) == 7
    assert in_flight.next_due_ns(wires, 0) == NEVER
    assert not in_flight.is_empty(wires)


def test_a_full_ring_accepts_nothing_and_keeps_its_datagrams():
    first = bytes(range(ENVELOPE_LENGTH + 40))
    wires = in_flight.make_wires(1, 2 * (16 + len(first)))
    assert put(wires, 0, 1, first)
    assert put(wires, 0, 2, first)
    assert not put(wires, 0, 3, first)
    assert wires.ends[0, OVERFLOWED] == 1
    assert arrived(wires, 0, 5) == [(1, first), (2, first)]
    assert put(wires, 0, 6, first)


@pytest.mark.parametrize("longest", [2_048, 65_504])
def test_held_frames_have_additional_space(longest):
    sizes = {"datagram_length_max": longest, "envelope_length_max": ENVELOPE_LENGTH}
    engine = make_engine(case(fault("duplicate", hold_ns=1)), **sizes)
    wires, twin = in_flight.make_wires(1, in_flight.wire_bytes(engine)), Wire()
    datagram = bytes(ENVELOPE_LENGTH + longest)
    while put(wires, 0, 1, datagram):
        twin.put(1, datagram)
    record_length = -(-(16 + len(datagram)) // 8) * 8
    held_max = min(HELD_BYTES_MAX, len(engine.held.records) * record_length)
    assert held_max + WIRE_BYTES - record_length < twin.used <= held_max + WIRE_BYTES


@pytest.mark.parametrize("faults", [(), (fault("drop"), fault("duplicate"))])
def test_without_a_rule_that_holds_frames_there_is_no_additional_space(faults):
    engine = make_engine(case(*faults), datagram_length_max=2_048, envelope_length_max=64)
    assert in_flight.wire_bytes(engine) == WIRE_BYTES
