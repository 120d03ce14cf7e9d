"""The distinct error log: one entry per distinct error, with a count and the first and last time.

    0        4        8                 16                 24
    +--------+--------+-----------------+------------------+---------------------+----------------
    | length | count  | last, epoch ms  | first, epoch ms  | text                | next, 8-aligned
    +--------+--------+-----------------+------------------+---------------------+----------------

The length includes header and text and is stored last, with release ordering. Length 0 ends the
log. One thread of the driver writes entries, and readers check every length. Two errors are equal
if both code and text are equal.
Source: driver-protocol 6.6.
"""

from dataclasses import dataclass

import numpy as np

from windtunnel.driver.base.arith import align
from windtunnel.driver.base.atomics import (
    add_i32,
    get_i32,
    get_i32_acquire,
    get_i64,
    get_i64_acquire,
    put_i32,
    put_i32_release,
    put_i64,
    put_i64_release,
)
from windtunnel.driver.base.clock import Clock

LENGTH = 0
OBSERVATION_COUNT = 4
LAST_OBSERVATION_MS = 8
FIRST_OBSERVATION_MS = 16
TEXT = 24
ALIGNMENT = 8

TEXT_LENGTH_MAX = 4096
"""The maximum length of an error text. A text may quote a client, and long texts must not fill the
log.
"""


@dataclass(frozen=True, slots=True)
class ErrorObservation:
    """One entry of the distinct error log."""

    observation_count: int
    first_observation_ms: int
    last_observation_ms: int
    text: str


class ErrorLog:
    """Writes the error log. It is used only by the driver's conductor."""

    def __init__(self, log: np.ndarray, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._offset_by_text: dict[bytes, int] = {}
        self._next = 0

    def record(self, code: int, text: str) -> bool:
        """Record an error. Returns False if the error is new and the log is full."""
        entry = f"({code}) {text}".encode("utf-8", "replace")[:TEXT_LENGTH_MAX]
        now_ms = self._clock.now_ms()
        at = self._offset_by_text.get(entry)
        if at is None:
            at = self._append(entry, now_ms)
            if at is None:
                return False
            self._offset_by_text[entry] = at
        else:
            add_i32(self._log, at + OBSERVATION_COUNT, 1)
            put_i64_release(self._log, at + LAST_OBSERVATION_MS, now_ms)
        return True

    def _append(self, entry: bytes, now_ms: int) -> int | None:
        at = self._next
        length = TEXT + len(entry)
        if at + length > self._log.size:
            return None
        put_i32(self._log, at + OBSERVATION_COUNT, 1)
        put_i64(self._log, at + LAST_OBSERVATION_MS, now_ms)
        put_i64(self._log, at + FIRST_OBSERVATION_MS, now_ms)
        self._log[at + TEXT : at + length] = np.frombuffer(entry, dtype=np.uint8)
        put_i32_release(self._log, at + LENGTH, length)
        self._next = int(align(at + length, ALIGNMENT))
        return at


def read_errors(log: np.ndarray, since_ms: int = 0) -> list[ErrorObservation]:
    """Return all errors observed at or after `since_ms`, in the order of their first observation.

    An invalid length ends the log.
    """
    found = []
    at = 0
    while at + TEXT <= log.size:
        length = int(get_i32_acquire(log, at + LENGTH))
        if length < TEXT or at + length > log.size:
            break
        last_ms = int(get_i64_acquire(log, at + LAST_OBSERVATION_MS))
        if last_ms >= since_ms:
            text = log[at + TEXT : at + length].tobytes().decode("utf-8", "replace")
            count = int(get_i32(log, at + OBSERVATION_COUNT))
            first_ms = int(get_i64(log, at + FIRST_OBSERVATION_MS))
            found.append(ErrorObservation(count, first_ms, last_ms, text))
        at += int(align(length, ALIGNMENT))
    return found
