"""The distinct error log: one entry per distinct error, with the number of observations and the
times of the first and the last one.

    0        4        8                 16                 24
    +--------+--------+-----------------+------------------+---------------------+----------------
    | length | count  | last, epoch ms  | first, epoch ms  | text                | next, 8-aligned
    +--------+--------+-----------------+------------------+---------------------+----------------

The length includes header and text and is stored last, with release ordering. Length 0 ends the
log. One thread of the driver writes entries, and readers check every length. Two errors are equal
if both code and text are equal.

The text of an error that a client or peer causes quotes what it sent. Each of these errors also has
a *kind*, which quotes nothing. The log stores a limited number of different texts per kind, and all
kinds together may use half of the log. This leaves room for other kinds and for the driver's own
errors. Errors that exceed these limits are counted in an entry that does not quote them. Source:
driver-protocol 6.6.
"""

from typing import NamedTuple, Protocol

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
"""The maximum length of an error message. A message may quote a client, and long messages must not
fill the log.
"""

TEXTS_PER_KIND_MAX = 8
"""Maximum number of different messages per kind of error, enough to see what they have in
common."""
FURTHER_ERRORS = "further errors that clients and peers caused"


class RecordError(Protocol):
    """A function that records an error in the distinct error log and counts it."""

    def __call__(self, code: int | None, text: str, kind: str = "") -> None:
        """Record an error. `kind` is required if the text includes data that a client or
        peer sent. A negative code is an errno, negated. With the code None, the entry is the
        text alone.
        """


class ErrorObservation(NamedTuple):
    """One entry of the distinct error log."""

    observation_count: int
    first_observation_ms: int
    last_observation_ms: int
    text: str


class ErrorLog:
    """Writes the distinct error log. Only the driver's conductor uses it."""

    def __init__(self, log: np.ndarray, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._offset_by_text: dict[bytes, int] = {}
        self._next = 0
        self._text_count_by_kind: dict[tuple[int | None, str], int] = {}
        self._foreign_length = 0

    def record(self, code: int | None, text: str, kind: str = "") -> bool:
        """Record an error. Returns False if the error is new and the log is full.

        `kind` is required if the text contains what a client or peer sent. With the code None,
        the entry is the text alone.
        """
        entry = _encode(code, text)
        if kind:
            entry = self._limit(code, entry, kind)
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

    def _limit(self, code: int | None, entry: bytes, kind: str) -> bytes:
        """Return the log entry for an error that a client or peer caused. The entry omits the
        error's text if the log already contains too many texts from clients and peers.
        """
        count = self._text_count_by_kind.get((code, kind), 0)
        if entry not in self._offset_by_text and count >= TEXTS_PER_KIND_MAX:
            entry = _encode(code, f"further errors: {kind}")
        if entry in self._offset_by_text:
            return entry
        length = int(align(TEXT + len(entry), ALIGNMENT))
        if self._foreign_length + length > self._log.size // 2:
            return FURTHER_ERRORS.encode()
        self._foreign_length += length
        self._text_count_by_kind[code, kind] = count + 1
        return entry

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


def _encode(code: int | None, text: str) -> bytes:
    prefix = "" if code is None else f"({code}) "
    return (prefix + text).encode("utf-8", "replace")[:TEXT_LENGTH_MAX]


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
