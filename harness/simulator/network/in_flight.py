"""Datagrams on their way through the wire: what left the middlebox arrives a constant time later.

    head                          tail
     | due, length, envelope, bytes | due, length, envelope, bytes |      one ring a link direction

A constant delay keeps the order, so a ring is enough; what comes late or out of turn has been kept
back by the middlebox. An envelope names source and destination:

    0              28       32                 60            64      72
    | source name  | length | destination name | length      | seal  |

A seal is the checksum of what the weather may damage; 0 is none.
"""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.base.atomics import copy, get_i32, get_i64, put_i32, put_i64
from windtunnel.driver.channel.socket_address import NAME_LENGTH_MAX
from windtunnel.driver.kernels.jit import kernel

SOURCE_LENGTH = NAME_LENGTH_MAX
DESTINATION = SOURCE_LENGTH + 4
DESTINATION_LENGTH = DESTINATION + NAME_LENGTH_MAX
SEAL = DESTINATION_LENGTH + 4
ENVELOPE_LENGTH = SEAL + 8

NOTHING = -1
NEVER = (1 << 63) - 1
# Columns of `ends`.
HEAD, TAIL, FLOODED = range(3)
"""Bytes taken and put since the beginning; datagrams that found the ring full."""

_DUE, _LENGTH, _RECORD_LENGTH, _ENVELOPE = 0, 8, 12, 16
_HEADER = _ENVELOPE + ENVELOPE_LENGTH
_FILLER = -1


class Flight(NamedTuple):
    """The wires of all link directions."""

    ends: Any  # int64[link, 3]
    memory: Any  # uint8[link, capacity], a multiple of 8


def make_flight(links: int, capacity: int) -> Flight:
    """So many empty wires."""
    return Flight(np.zeros((links, 3), dtype=np.int64), np.zeros((links, capacity), dtype=np.uint8))


@kernel
def put(
    flight: Flight, link: int, due_ns: int, buf: Any, at: int, envelope_length: int, length: int
) -> bool:
    """Send a datagram off, its envelope before it; False when the wire holds all that it can."""
    memory, ends = flight.memory[link], flight.ends[link]
    capacity = memory.size
    needed = (_HEADER + length + 7) & -8
    free = capacity - (ends[TAIL] - ends[HEAD])
    index = ends[TAIL] % capacity
    to_end = capacity - index
    is_round = needed > to_end
    if needed + (to_end if is_round else 0) > free:
        ends[FLOODED] += 1
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
def next_at(flight: Flight, link: int) -> int:
    """Where in the memory of a wire the datagram lies that arrives next, or NOTHING."""
    memory, ends = flight.memory[link], flight.ends[link]
    capacity = memory.size
    if ends[HEAD] == ends[TAIL]:
        return NOTHING
    at = ends[HEAD] % capacity
    if capacity - at < _ENVELOPE or get_i32(memory, at + _LENGTH) == _FILLER:
        ends[HEAD] += capacity - at
        at = 0
    return int(at)


@kernel
def due_ns(flight: Flight, link: int, at: int) -> int:
    """When a datagram arrives; NEVER for NOTHING."""
    return NEVER if at == NOTHING else int(get_i64(flight.memory[link], at + _DUE))


@kernel
def next_due_ns(flight: Flight, link: int) -> int:
    """When the next datagram of a wire arrives, or NEVER."""
    return due_ns(flight, link, next_at(flight, link))


@kernel
def envelope_at(at: int) -> int:
    """Where a datagram's envelope begins; its bytes lie behind."""
    return at + _ENVELOPE


@kernel
def length_of(flight: Flight, link: int, at: int) -> int:
    """The bytes of a datagram."""
    return int(get_i32(flight.memory[link], at + _LENGTH))


@kernel
def take(flight: Flight, link: int, at: int) -> None:
    """Let go of the datagram that `next_at` named."""
    flight.ends[link, HEAD] += get_i32(flight.memory[link], at + _RECORD_LENGTH)


def is_empty(flight: Flight) -> bool:
    """Whether nothing is on its way on any wire."""
    return bool((flight.ends[:, HEAD] == flight.ends[:, TAIL]).all())
