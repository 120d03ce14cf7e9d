"""Datagrams on their way through the wire: what left the middlebox arrives a constant time later.

    head                          tail
     | due, length, envelope, bytes | due, length, envelope, bytes |      one ring a direction

A constant delay keeps the order, so a ring is enough; what comes late or out of turn has been kept
back by the middlebox. An envelope names source and destination:

    0              28       32                 60            64      72
    | source name  | length | destination name | length      | seal  |

A seal is the checksum of what the weather may damage; 0 is none.
"""

from typing import Any, NamedTuple

import numpy as np

from driver.base.atomics import copy, get_i32, get_i64, put_i32, put_i64
from driver.channel.socket_address import NAME_LENGTH_MAX
from harness.kernel import bare_kernel

SOURCE_LENGTH = NAME_LENGTH_MAX
DESTINATION = SOURCE_LENGTH + 4
DESTINATION_LENGTH = DESTINATION + NAME_LENGTH_MAX
SEAL = DESTINATION_LENGTH + 4
ENVELOPE_LENGTH = SEAL + 8

NOTHING = -1
NEVER = (1 << 63) - 1
HEAD, TAIL = 0, 1

_DUE, _LENGTH, _RECORD_LENGTH, _ENVELOPE = 0, 8, 12, 16
_HEADER = _ENVELOPE + ENVELOPE_LENGTH
_FILLER = -1


class Flight(NamedTuple):
    """One direction of the wire."""

    ends: Any  # int64[2], bytes taken and put since the beginning
    memory: Any  # uint8[capacity], a multiple of 8


def make_flight(capacity: int) -> Flight:
    """An empty wire."""
    return Flight(np.zeros(2, dtype=np.int64), np.zeros(capacity, dtype=np.uint8))


@bare_kernel
def put(flight: Flight, due_ns: int, buf: Any, at: int, envelope_length: int, length: int) -> bool:
    """Send a datagram off, its envelope before it; False when the wire holds all that it can."""
    memory, capacity = flight.memory, flight.memory.size
    needed = (_HEADER + length + 7) & -8
    free = capacity - (flight.ends[TAIL] - flight.ends[HEAD])
    index = flight.ends[TAIL] % capacity
    to_end = capacity - index
    if needed > to_end:
        if needed + to_end > free:
            return False
        if to_end >= _ENVELOPE:
            put_i32(memory, index + _LENGTH, _FILLER)
        flight.ends[TAIL] += to_end
        index = 0
    elif needed > free:
        return False
    put_i64(memory, index + _DUE, due_ns)
    put_i32(memory, index + _LENGTH, length)
    put_i32(memory, index + _RECORD_LENGTH, needed)
    copy(memory, index + _ENVELOPE, buf, at, envelope_length + length)
    flight.ends[TAIL] += needed
    return True


@bare_kernel
def next_at(flight: Flight) -> int:
    """Where in the memory the datagram lies that arrives next, or NOTHING."""
    capacity = flight.memory.size
    if flight.ends[HEAD] == flight.ends[TAIL]:
        return NOTHING
    at = flight.ends[HEAD] % capacity
    if capacity - at < _ENVELOPE or get_i32(flight.memory, at + _LENGTH) == _FILLER:
        flight.ends[HEAD] += capacity - at
        at = 0
    return int(at)


@bare_kernel
def due_ns(flight: Flight, at: int) -> int:
    """When a datagram arrives; NEVER for NOTHING."""
    return NEVER if at == NOTHING else int(get_i64(flight.memory, at + _DUE))


@bare_kernel
def next_due_ns(flight: Flight) -> int:
    """When the next datagram arrives, or NEVER."""
    return due_ns(flight, next_at(flight))


@bare_kernel
def envelope_at(at: int) -> int:
    """Where a datagram's envelope begins; its bytes lie behind."""
    return at + _ENVELOPE


@bare_kernel
def length_of(flight: Flight, at: int) -> int:
    """The bytes of a datagram."""
    return int(get_i32(flight.memory, at + _LENGTH))


@bare_kernel
def take(flight: Flight, at: int) -> None:
    """Let go of the datagram that `next_at` named."""
    flight.ends[HEAD] += get_i32(flight.memory, at + _RECORD_LENGTH)
