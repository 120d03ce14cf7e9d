"""Datagrams in flight on the wire. They arrive a constant time after leaving the middlebox.

    head                          tail
     | due, length, envelope, bytes | due, length, envelope, bytes |   one ring per link direction

A constant delay preserves the order, so a ring is enough. The middlebox has already applied delay
and reordering. Held frames that are due at the same time depart one after another. Those that wait
for their departure are on the wire, too, and so are the datagrams behind them.

An envelope names source and destination:

    0              28       32                 60            64      72               80
    | source name  | length | destination name | length      | seal  | identification |

The seal is a checksum of the datagram if impairments may corrupt it, else 0. The identification is
the packet's IPv4 identification: transmissions of the same bytes differ in it, and duplicates made
on the way have their original's.
"""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.base.atomics import copy, get_i32, get_i64, put_i32, put_i64
from windtunnel.driver.channel.socket_address import NAME_LENGTH_MAX
from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.middlebox.engine.state import Engine

SOURCE_LENGTH = NAME_LENGTH_MAX
DESTINATION = SOURCE_LENGTH + 4
DESTINATION_LENGTH = DESTINATION + NAME_LENGTH_MAX
SEAL = DESTINATION_LENGTH + 4
IDENTIFICATION = SEAL + 8
ENVELOPE_LENGTH = IDENTIFICATION + 8

WIRE_BYTES = 4 << 20
"""Capacity of a wire without held frames, far more than the receiver windows of a case's streams.
"""
HELD_BYTES_MAX = 256 << 20
"""Maximum room for held frames on a wire."""
NOTHING = -1
NEVER = (1 << 63) - 1
# Columns of `ends`.
HEAD, TAIL, OVERFLOWED, DEPARTED = range(4)
"""Numbers of bytes taken and put since the ring was last empty; number of datagrams dropped because
the ring was full; departure time of the last datagram.
"""

_DUE, _LENGTH, _RECORD_LENGTH, _ENVELOPE = 0, 8, 12, 16
_FILLER = -1


class Wires(NamedTuple):
    """The wires of all link directions, as ring buffers."""

    ends: Any  # int64[link, 4]
    memory: Any  # uint8[link, capacity], a multiple of 8


def make_wires(links: int, capacity: int) -> Wires:
    """Create one empty wire of `capacity` bytes for each link direction."""
    return Wires(np.zeros((links, 4), dtype=np.int64), np.zeros((links, capacity), dtype=np.uint8))


def wire_bytes(engine: Engine) -> int:
    """Return the capacity in bytes that each wire needs: WIRE_BYTES, and if a rule holds frames,
    room for as many as the middlebox can hold, which may all be due at the same time, but at most
    HELD_BYTES_MAX.

    A wire uses only as much memory as its datagrams have needed at most.
    """
    if not (engine.rules["delay_ns"] > 0).any():
        return WIRE_BYTES
    slots, slot_length = engine.held.buf.shape
    return WIRE_BYTES + min(HELD_BYTES_MAX, int(slots) * int(_record_length(slot_length)))


@kernel
def _record_length(length: int) -> int:
    """Return the length in a ring of an envelope and a datagram that have `length` bytes."""
    return (_ENVELOPE + length + 7) & -8


@kernel
def depart(wires: Wires, link: int, now_ns: int, apart_ns: int) -> int:
    """Record the departure of a link's next datagram, and return the departure time.

    The datagram departs as soon as possible, but at least `apart_ns` after the previous one. That
    must not be negative, so that the order is preserved.
    """
    ends = wires.ends[link]
    ends[DEPARTED] = max(now_ns, ends[DEPARTED] + apart_ns)
    return int(ends[DEPARTED])


@kernel
def put(
    wires: Wires, link: int, due_ns: int, buf: Any, at: int, envelope_length: int, length: int
) -> bool:
    """Put a datagram on a wire, preceded by an envelope with its addresses.

    Returns False if the wire is full.
    """
    memory, ends = wires.memory[link], wires.ends[link]
    capacity = memory.size
    if ends[HEAD] == ends[TAIL]:
        # An empty ring restarts at its first byte, so it touches few pages.
        ends[HEAD] = ends[TAIL] = 0
    needed = _record_length(envelope_length + length)
    free = capacity - (ends[TAIL] - ends[HEAD])
    index = ends[TAIL] % capacity
    to_end = capacity - index
    is_round = needed > to_end
    if needed + (to_end if is_round else 0) > free:
        ends[OVERFLOWED] += 1
        return False
    if is_round:
        if to_end >= _ENVELOPE:
            put_i32(memory, index + _LENGTH, _FILLER)
        ends[TAIL] += to_end
        index = 0
    put_i64(memory, index + _DUE, due_ns)
    put_i32(memory, index + _LENGTH, length)
    put_i32(memory, index + _RECORD_LENGTH, needed)
    copy(memory, index + _ENVELOPE, buf, at, envelope_length + length)
    ends[TAIL] += needed
    return True


@kernel
def next_at(wires: Wires, link: int) -> int:
    """Return the offset of the next datagram to arrive on a wire, or NOTHING if there is none."""
    memory, ends = wires.memory[link], wires.ends[link]
    capacity = memory.size
    if ends[HEAD] == ends[TAIL]:
        return NOTHING
    at = ends[HEAD] % capacity
    if capacity - at < _ENVELOPE or get_i32(memory, at + _LENGTH) == _FILLER:
        ends[HEAD] += capacity - at
        at = 0
    return int(at)


@kernel
def due_ns(wires: Wires, link: int, at: int) -> int:
    """Return the arrival time of the datagram at offset `at`, or NEVER if `at` is NOTHING."""
    return NEVER if at == NOTHING else int(get_i64(wires.memory[link], at + _DUE))


@kernel
def next_due_ns(wires: Wires, link: int) -> int:
    """Return the arrival time of a wire's next datagram, or NEVER if the wire is empty."""
    return due_ns(wires, link, next_at(wires, link))


@kernel
def envelope_at(at: int) -> int:
    """Return the offset of a datagram's envelope (its addresses), which precedes the payload."""
    return at + _ENVELOPE


@kernel
def length_of(wires: Wires, link: int, at: int) -> int:
    """Return a datagram's length in bytes."""
    return int(get_i32(wires.memory[link], at + _LENGTH))


@kernel
def take(wires: Wires, link: int, at: int) -> None:
    """Remove a datagram from a wire, given the offset that `next_at` returned."""
    wires.ends[link, HEAD] += get_i32(wires.memory[link], at + _RECORD_LENGTH)


def is_empty(wires: Wires) -> bool:
    """Return whether no datagram is in flight on any wire."""
    return bool((wires.ends[:, HEAD] == wires.ends[:, TAIL]).all())
