"""The wire's ring against a list, round its end many times, and full."""

import random

import numpy as np
import pytest

from harness.simulator import flight
from harness.simulator.flight import ENVELOPE_LENGTH, HEAD, NEVER, NOTHING, TAIL
from tests.naive.flight import Wire

RECORD_MAX = 16 + ENVELOPE_LENGTH + 700 + 8
"""Of the longest datagram here; a ring that goes round leaves less than that unused at its end."""


def arrived(ring, now_ns):
    """Take what is due, as the world's kernel does."""
    found = []
    while flight.due_ns(ring, at := flight.next_at(ring)) <= now_ns:
        begin, length = flight.envelope_at(at), flight.length_of(ring, at)
        whole = ring.memory[begin : begin + ENVELOPE_LENGTH + length]
        found.append((int(flight.due_ns(ring, at)), whole.tobytes()))
        flight.take(ring, at)
    return found


def put(ring, due_ns, datagram):
    buf = np.frombuffer(b"??" + datagram, dtype=np.uint8)
    return flight.put(ring, due_ns, buf, 2, ENVELOPE_LENGTH, len(datagram) - ENVELOPE_LENGTH)


@pytest.mark.parametrize("seed", range(5))
def test_keeps_bytes_and_order(seed):
    chance = random.Random(seed)
    ring, twin = flight.make_flight(4_096), Wire()
    now_ns = 0
    for _ in range(2_000):
        now_ns += chance.randint(0, 30)
        if chance.random() < 0.6:
            datagram = chance.randbytes(ENVELOPE_LENGTH + chance.randint(0, 700))
            if put(ring, now_ns + 100, datagram):
                twin.put(now_ns + 100, datagram)
            else:
                assert twin.used + RECORD_MAX + RECORD_MAX > 4_096
        else:
            assert arrived(ring, now_ns) == twin.arrived(now_ns)
    assert arrived(ring, NEVER - 1) == twin.arrived(NEVER)
    assert ring.ends[HEAD] == ring.ends[TAIL]
    assert ring.ends[TAIL] > 20 * 4_096


def test_empty_wire_has_nothing_due():
    ring = flight.make_flight(256)
    assert flight.next_at(ring) == NOTHING
    assert flight.due_ns(ring, NOTHING) == NEVER


def test_full_wire_takes_nothing_and_keeps_what_it_has():
    ring = flight.make_flight(256)
    first = bytes(range(ENVELOPE_LENGTH + 40))
    assert put(ring, 1, first)
    assert put(ring, 2, first)
    assert not put(ring, 3, first)
    assert arrived(ring, 5) == [(1, first), (2, first)]
    assert put(ring, 6, first)
