"""Records all events of a simulated world as one digest and, optionally, all its datagrams.

    datagram   (time, host, direction, bytes) --+--> digest, 64 bits
    counter    (time, host, id, value)        --+
    datagram   ---------------------------------+--> tape, drained by Python into capture files

Two runs with the same seed must end with the same digest. The digest distinguishes runs and is not
cryptographic: each word is mixed in with one multiplication.

The tape is the buffer of recorded datagrams. A record: time (i64), length (i32), host (u8),
direction (u8), two unused bytes, the envelope, the bytes; aligned to 8.
"""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.base.atomics import copy, get_i32, get_i64, put_i32, put_i64
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import JIT_DISABLED, kernel
from windtunnel.harness.simulator.network.in_flight import ENVELOPE_LENGTH

# Cells of `state`.
DIGEST, USED, DATAGRAMS, CHANGES = range(4)

SENT, RECEIVED = 0, 1
"""Direction of a datagram as seen from the host."""

TAPE_TIME, TAPE_LENGTH, TAPE_HOST, TAPE_WAY = 0, 8, 12, 13
TAPE_ENVELOPE = 16
TAPE_BYTES = TAPE_ENVELOPE + ENVELOPE_LENGTH

_PRIME = 0x2127599BF4325C37
"""An odd 62-bit multiplier, as in Zilong Tan's fast-hash."""
_SECOND, _THIRD, _FOURTH = 0x1111111111111111, 0x2222222222222222, 0x4444444444444444
_DATAGRAM, _CHANGE = 1, 2
_LOW = 0xFFFFFFFF
_ALL = 0xFFFFFFFFFFFFFFFF


class EventLog(NamedTuple):
    """The digest so far, the recorded datagrams (`tape`), and the last seen counter values."""

    state: Any  # int64, one cell each
    tape: Any  # uint8[n], empty if datagrams are not recorded
    seen: Any  # int64[host, counter id]: last value


def make_event_log(tape_length: int, counters_watched: int, hosts: int = 2) -> EventLog:
    """Create an empty event log. On every host, it records the changes of the `counters_watched`
    counters with the lowest ids.
    """
    return EventLog(
        state=np.zeros(4, dtype=np.int64),
        tape=np.zeros(tape_length, dtype=np.uint8),
        seen=np.zeros((hosts, counters_watched), dtype=np.int64),
    )


@kernel
def _times(left: int, right: int) -> int:
    """Return the low 64 bits of a product."""
    return left * right


def _times_of_any_size(left: int, right: int) -> int:
    """Return the low 64 bits of a product of Python integers. Replaces `_times` when the JIT is
    disabled.
    """
    product = int(left) * right & _ALL
    return product - (product >> 63 << 64)


if JIT_DISABLED:
    _times = _times_of_any_size


@kernel
def mix(digest: int, word: int) -> int:
    """Return the digest with one more 64-bit word mixed in."""
    mixed = _times(digest ^ word, _PRIME)
    return mixed ^ ((mixed >> 32) & _LOW)


@kernel
def mix_bytes(digest: int, buf: Any, at: int, length: int) -> int:
    """Return the digest with more bytes mixed in. The last word is padded with zeros.

    Four words at a time are mixed into four independent digests, which the CPU can do in parallel.
    """
    rows_end, whole_end = at + (length & -32), at + (length & -8)
    second, third, fourth = digest ^ _SECOND, digest ^ _THIRD, digest ^ _FOURTH
    for row in range(at, rows_end, 32):
        digest = mix(digest, get_i64(buf, row))
        second = mix(second, get_i64(buf, row + 8))
        third = mix(third, get_i64(buf, row + 16))
        fourth = mix(fourth, get_i64(buf, row + 24))
    digest = mix(mix(mix(digest, second), third), fourth)
    for word_at in range(rows_end, whole_end, 8):
        digest = mix(digest, get_i64(buf, word_at))
    rest = 0
    for index in range(whole_end, at + length):
        rest = rest << 8 | int(np.int64(buf[index]))
    return mix(digest, rest)


@kernel
def has_room(log: EventLog, length: int) -> bool:
    """Return True if there is room to record a datagram, or if datagrams are not recorded."""
    tape_length = int(log.tape.size)
    used = int(log.state[USED])
    return tape_length == 0 or used + TAPE_BYTES + length + 8 <= tape_length


@kernel
def note_datagram(
    log: EventLog, now_ns: int, host: int, way: int, buf: Any, envelope: int, length: int
) -> None:
    """Record a datagram that a host sent or received, with time, direction, addresses and bytes."""
    state = log.state
    digest = mix(state[DIGEST], now_ns)
    digest = mix(digest, length << 9 | host << 4 | way << 2 | _DATAGRAM)
    state[DIGEST] = mix_bytes(digest, buf, envelope, ENVELOPE_LENGTH + length)
    state[DATAGRAMS] += 1
    if log.tape.size == 0:
        return
    at = state[USED]
    assert at + TAPE_BYTES + length + 8 <= log.tape.size
    put_i64(log.tape, at + TAPE_TIME, now_ns)
    put_i32(log.tape, at + TAPE_LENGTH, length)
    log.tape[at + TAPE_HOST] = host
    log.tape[at + TAPE_WAY] = way
    copy(log.tape, at + TAPE_ENVELOPE, buf, envelope, ENVELOPE_LENGTH + length)
    state[USED] = (at + TAPE_BYTES + length + 7) & -8


@kernel
def next_identification(log: EventLog) -> int:
    """Return the next datagram's IPv4 identification, a 16-bit number that differs from those of
    the datagrams sent shortly before and after it.
    """
    return int(log.state[DATAGRAMS]) & 0xFFFF


@kernel
def note_counters(log: EventLog, now_ns: int, host: int, values: Any, first: int, end: int) -> None:
    """Record each change of a host's counters `first` to `end - 1` since the last call."""
    seen = log.seen[host]
    for counter_id in range(first, min(end, seen.size)):
        value = get_i64(values, counter_id * counters.COUNTER_LENGTH)
        if value != seen[counter_id]:
            seen[counter_id] = value
            digest = mix(log.state[DIGEST], now_ns)
            digest = mix(digest, counter_id << 9 | host << 4 | _CHANGE)
            log.state[DIGEST] = mix(digest, value)
            log.state[CHANGES] += 1


@kernel
def tape_length(tape: Any, at: int) -> int:
    """Return the length of a recorded datagram whose record starts at `at`."""
    return int(get_i32(tape, at + TAPE_LENGTH))


def digest_text(log: EventLog) -> str:
    """Return the digest as 16 hexadecimal digits."""
    return f"{int(log.state[DIGEST]) & _ALL:016x}"
