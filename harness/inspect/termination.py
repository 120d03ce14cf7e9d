"""Writes a TERMINATE_DRIVER command into a driver's command ring.

    claim     advance the tail by the record's aligned length; if the record does not fit before
              the end of the ring, fill the rest with a padding record
    record    0 length (i32)   4 type (i32)   8 client id   16 correlation id   24 token length   28

A record's length is negative while the record is written, and positive once it is complete. Length
and type are written as one word. The driver terminates only if its termination validator accepts
the token, and sends no response. Source: specification sections 6.3 and 7.1.
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
"""Maximum number of attempts to claim space while other clients write. If all of them fail, the
ring is considered damaged."""


class RequestError(RuntimeError):
    """Raised if the request could not be written. The message contains the reason."""


def request_termination(directory: Path, token: bytes) -> None:
    """Request a driver's termination. Raises NothingThereError if there is no driver, CncFileError
    if its cnc file is invalid, or RequestError if the request cannot be written.
    """
    path = directory / CNC_FILE
    try:
        header = np.fromfile(path, dtype=np.uint8, count=HEADER_LENGTH)
        ends = section_ends(header)
        if ends is None:
            raise NothingThereError(f"{path}: the driver has not initialized the file yet")
        if path.stat().st_size < ends[0]:
            raise CncFileError(f"{path}: the file ends inside its command ring")
        mapped = np.memmap(path, dtype=np.uint8, mode="r+", shape=(ends[0],))
    except FileNotFoundError as error:
        raise NothingThereError(f"no driver: {path} does not exist") from error
    except CncFileError as error:
        raise CncFileError(f"{path}: {error}") from error
    capacity = ends[0] - HEADER_LENGTH - RING_TRAILER_LENGTH
    if capacity < ALIGNMENT or capacity & (capacity - 1):
        text = f"expected a command ring whose length is a power of two, found {capacity} bytes"
        raise CncFileError(f"{path}: {text}")
    Ring(np.asarray(mapped)[HEADER_LENGTH:]).request_termination(token)


class Ring:
    """A driver's command ring, opened for writing one command."""

    def __init__(self, section: NDArray[np.uint8]) -> None:
        self._bytes = section
        self._words = section.view(np.int64)
        self._capacity = len(section) - RING_TRAILER_LENGTH

    def request_termination(self, token: bytes) -> None:
        """Write the termination request.

        Raises RequestError if the token is too long or the ring is full.
        """
        client_id = self._next_correlation_id()
        message = struct.pack("<qqi", client_id, NO_CORRELATION_ID, len(token)) + token
        if len(message) > self._capacity // 8:
            text = f"expected a message of at most {self._capacity // 8} bytes"
            raise RequestError(f"{text}, found {len(message)}: use a shorter token")
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
        raise RequestError("cannot take a correlation id: the command ring is damaged")

    def _write(self, type_id: int, message: bytes) -> None:
        length = RECORD_HEADER_LENGTH + len(message)
        at = self._claim((length + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT)
        self._set_header(at, -length, 0)
        start = at + RECORD_HEADER_LENGTH
        self._bytes[start : start + len(message)] = np.frombuffer(message, dtype=np.uint8)
        self._set_header(at, length, type_id)

    def _claim(self, needed: int) -> int:
        """Claim space for the record and return its offset."""
        for _ in range(_ATTEMPTS_MAX):
            head = self._word(self._capacity + _HEAD)
            tail = self._word(self._capacity + _TAIL)
            used = tail - head
            if not 0 <= used <= self._capacity or tail % ALIGNMENT or tail > 1 << 62:
                continue  # Head or tail moved between the two reads, or the ring is damaged.
            at = tail & (self._capacity - 1)
            to_end = self._capacity - at
            padding = to_end if needed > to_end else 0
            if used + padding + needed > self._capacity:
                raise RequestError("the command ring is full: the driver is not reading commands")
            # The head cache of other producers may become stale, which is harmless.
            if self._swap(self._capacity + _TAIL, tail, tail + padding + needed):
                if padding:
                    self._set_header(at, padding, PADDING)
                return 0 if padding else at
        raise RequestError("cannot claim a record: the command ring is damaged")

    def _set_header(self, at: int, length: int, type_id: int) -> None:
        """Write a record's length and type as one word, which becomes visible after all preceding
        writes.
        """
        desired = int.from_bytes(struct.pack("<ii", length, type_id), "little", signed=True)
        for _ in range(_ATTEMPTS_MAX):
            if self._swap(at, self._word(at), desired):
                return
        raise RequestError("another process wrote to the claimed record: the ring is damaged")
