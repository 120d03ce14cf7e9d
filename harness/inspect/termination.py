"""Asking a driver to end: one command, TERMINATE_DRIVER, into its command ring.

    claim     the tail moves on by the record's aligned length; what does not fit before the end
              of the ring is padded over
    record    0 length (i32)   4 type (i32)   8 client id   16 correlation id   24 token length   28

A record's length is negative while it is written and positive once it is whole; length and type
are one word here, and change together. A driver obeys only when it is told to accept the token,
and never answers. Source: specification sections 6.3 and 7.1.
"""

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.dissect.driver_files.cnc_file import (
    HEADER_LENGTH,
    RING_TRAILER_LENGTH,
    CncFileError,
    section_ends,
)
from windtunnel.harness.inspect.aeron_dir import CNC_FILE, NothingThereError
from windtunnel.harness.inspect.compare_and_swap import compare_and_swap

TERMINATE_DRIVER = 0x0E
PADDING = -1
NO_CORRELATION_ID = -1
RECORD_HEADER_LENGTH = 8
ALIGNMENT = 8
_WORD = 8
_TAIL, _HEAD_CACHE, _HEAD, _CORRELATION_ID = 128, 256, 384, 512
_ATTEMPTS_MAX = 10_000
"""Other clients may be quicker so often; a ring where it goes on for longer is no ring."""


class RequestError(RuntimeError):
    """The request could not be written; the text says why."""


def request_termination(directory: Path, token: bytes) -> None:
    """Write the request; raises NothingThereError, CncFileError or RequestError."""
    path = directory / CNC_FILE
    try:
        header = np.fromfile(path, dtype=np.uint8, count=HEADER_LENGTH)
        ends = section_ends(header)
        if ends is None:
            raise NothingThereError(f"{path}: the driver has not finished making it")
        if path.stat().st_size < ends[0]:
            raise CncFileError(f"{path}: it ends within its command ring")
        mapped = np.memmap(path, dtype=np.uint8, mode="r+", shape=(ends[0],))
    except FileNotFoundError as error:
        raise NothingThereError(f"no driver: there is no {path}") from error
    except CncFileError as error:
        raise CncFileError(f"{path}: {error}") from error
    capacity = ends[0] - HEADER_LENGTH - RING_TRAILER_LENGTH
    if capacity < ALIGNMENT or capacity & (capacity - 1):
        raise CncFileError(f"{path}: command ring of {capacity} bytes: expected a power of two")
    Ring(np.asarray(mapped)[HEADER_LENGTH:]).request_termination(token)


class Ring:
    """The to-driver section of a cnc file, for writing one command."""

    def __init__(self, section: NDArray[np.uint8]) -> None:
        self._bytes = section
        self._words = section.view(np.int64)
        self._capacity = len(section) - RING_TRAILER_LENGTH

    def request_termination(self, token: bytes) -> None:
        """Write the request; raises RequestError when the token is too long or the ring full."""
        client_id = self._next_correlation_id()
        message = struct.pack("<qqi", client_id, NO_CORRELATION_ID, len(token)) + token
        if len(message) > self._capacity // 8:
            raise RequestError(f"a token of {len(token)} bytes is too long for the command ring")
        self._write(TERMINATE_DRIVER, message)

    def _word(self, at: int) -> int:
        return int(self._words[at // _WORD])

    def _swap(self, at: int, expected: int, desired: int) -> bool:
        return bool(compare_and_swap(self._words, at // _WORD, expected, desired))

    def _next_correlation_id(self) -> int:
        at = self._capacity + _CORRELATION_ID
        for _ in range(_ATTEMPTS_MAX):
            found = self._word(at)
            if found < (1 << 63) - 1 and self._swap(at, found, found + 1):
                return found
        raise RequestError("the command ring gives no ids: it is damaged")

    def _write(self, type_id: int, message: bytes) -> None:
        length = RECORD_HEADER_LENGTH + len(message)
        at = self._claim((length + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT)
        self._set_header(at, -length, 0)
        start = at + RECORD_HEADER_LENGTH
        self._bytes[start : start + len(message)] = np.frombuffer(message, dtype=np.uint8)
        self._set_header(at, length, type_id)

    def _claim(self, needed: int) -> int:
        """Where the record may lie, from now on ours alone."""
        for _ in range(_ATTEMPTS_MAX):
            head = self._word(self._capacity + _HEAD)
            tail = self._word(self._capacity + _TAIL)
            used = tail - head
            if not 0 <= used <= self._capacity or tail % ALIGNMENT or tail > 1 << 62:
                continue  # other ends of the ring moved far between the two looks, or it is damaged
            at = tail & (self._capacity - 1)
            to_end = self._capacity - at
            padding = to_end if needed > to_end else 0
            if used + padding + needed > self._capacity:
                raise RequestError("the command ring is full: the driver does not take commands")
            # The head cache of other producers stays behind the head at most, which is harmless.
            if self._swap(self._capacity + _TAIL, tail, tail + padding + needed):
                if padding:
                    self._set_header(at, padding, PADDING)
                return 0 if padding else at
        raise RequestError("the command ring gives no room: it is damaged")

    def _set_header(self, at: int, length: int, type_id: int) -> None:
        """Length and type in one word, seen after all that was written before."""
        desired = int.from_bytes(struct.pack("<ii", length, type_id), "little", signed=True)
        for _ in range(_ATTEMPTS_MAX):
            if self._swap(at, self._word(at), desired):
                return
        raise RequestError("somebody else writes where the command ring gave us room")
