"""The message plan: a publisher's messages, computed as a pure function of the seed.

    payload file   |------------------------------------|       (length P)
    message 0      |---|
    message 1          |--------------|
    message 2                         |--------  ... wraps around at P

Message i holds the file's bytes from (sum of the lengths before i) modulo P. Lengths are
distributed over octaves: each doubling from the shortest to the longest is equally likely, and so
is each length within a doubling. Only exact arithmetic and raw PCG64 output are used, so the plan
is the same on every machine.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BATCH = 4096
_RANDOM_BITS = 53


@dataclass(frozen=True)
class MessagePlan:
    """The lengths and start offsets of a stream's messages, in order."""

    lengths: NDArray[np.int64]
    starts: NDArray[np.int64]
    "Each message's offset in the repeated payload: the total length of all earlier messages."

    @property
    def count(self) -> int:
        return len(self.lengths)

    @property
    def total_bytes(self) -> int:
        return int(self.lengths.sum())


def plan(
    seed: int, traffic_id: str, total_bytes: int, longest: int, shortest: int = 1
) -> MessagePlan:
    """Plan a stream's messages, with lengths from `shortest` to `longest` that add up to
    `total_bytes`.
    """
    if not 1 <= shortest <= longest:
        raise ValueError(
            f"message lengths: expected 1 <= shortest <= longest, found {shortest} and {longest}"
        )
    if total_bytes < 1:
        raise ValueError(f"expected at least 1 byte of content, found {total_bytes}")
    source = _source(seed, traffic_id)
    batches, drawn_bytes = [], 0
    while drawn_bytes < total_bytes:
        batches.append(_draw(source, shortest, longest))
        drawn_bytes += int(batches[-1].sum())
    lengths = np.concatenate(batches)
    ends = np.cumsum(lengths)
    count = int(np.searchsorted(ends, total_bytes)) + 1
    lengths = lengths[:count].copy()
    lengths[-1] -= int(ends[count - 1]) - total_bytes
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    return MessagePlan(lengths=lengths, starts=starts)


def message_bytes(payload: NDArray[np.uint8], start: int, length: int) -> NDArray[np.uint8]:
    """Return the `length` bytes of a message that begins at offset `start` of the payload. The
    payload repeats without end.
    """
    at = start % len(payload)
    if at + length <= len(payload):
        return payload[at : at + length]
    return np.take(payload, np.arange(at, at + length), mode="wrap")


def _source(seed: int, traffic_id: str) -> Any:
    digest = hashlib.sha256(f"{seed}:{traffic_id}".encode()).digest()
    return np.random.PCG64(np.random.SeedSequence(int.from_bytes(digest, "big")))


def _octave(length: int) -> float:
    """Return an approximate logarithm to base 2. It is linear between powers of two, so that it can
    be computed exactly.
    """
    whole = length.bit_length() - 1
    return whole + (length - (1 << whole)) / (1 << whole)


def _draw(source: Any, shortest: int, longest: int) -> NDArray[np.int64]:
    uniform = (source.random_raw(_BATCH) >> np.uint64(64 - _RANDOM_BITS)).astype(np.float64)
    uniform *= 2.0**-_RANDOM_BITS
    low, high = _octave(shortest), _octave(longest + 1)
    octave = low + uniform * (high - low)
    whole = np.floor(octave)
    lengths = np.floor(np.ldexp(1.0 + (octave - whole), whole.astype(np.int64)))
    drawn: NDArray[np.int64] = np.clip(lengths, shortest, longest).astype(np.int64)
    return drawn
