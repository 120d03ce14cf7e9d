"""The header of `cnc.dat`: section lengths and other values that clients read.

    0         4                              24                  32         40    48          128
    +---------+------------------------------+-------------------+----------+-----+-----------+
    | version | five section lengths (i32)   | client liveness   | start,   | pid | page size |
    |         | in their order in the file   | timeout, ns       | epoch ms |     | then zero |
    +---------+------------------------------+-------------------+----------+-----+-----------+

A header is an immutable value; `cnc_file` reads and writes it. `faults` lists errors that make the
sections unusable. `conclude` applies the stricter limits for a file that a driver creates.
Source: driver-protocol 6.1.
"""

import struct
from typing import NamedTuple

import numpy as np

from windtunnel.driver.base.arith import I32_MAX, align, is_power_of_two
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.cnc import broadcast, counters, ring_buffer

VERSION = 0
LENGTHS = 4
TIMES = 24
PAGE_SIZE = 48
HEADER_LENGTH = 128

RING_LENGTH_MIN = (1 << 20) + ring_buffer.TRAILER_LENGTH
BROADCAST_LENGTH_MIN = (1 << 20) + broadcast.TRAILER_LENGTH
VALUES_LENGTH_MIN = 1 << 20
VALUES_LENGTH_MAX = 500 << 20
ERROR_LOG_LENGTH_MIN = 4 << 20
METADATA_PER_VALUE = counters.METADATA_LENGTH // counters.COUNTER_LENGTH


class CncHeader(NamedTuple):
    """The fields of the `cnc.dat` header. The defaults are those that a driver uses."""

    to_driver_buffer_length: int = RING_LENGTH_MIN
    """Length of the command ring buffer in bytes, including its 768-byte trailer."""
    to_clients_buffer_length: int = BROADCAST_LENGTH_MIN
    """Length of the broadcast buffer in bytes, including its 128-byte trailer."""
    counters_metadata_buffer_length: int = 32 << 20
    """Length of the counter metadata section in bytes: 512 per counter."""
    counters_values_buffer_length: int = 8 << 20
    """Length of the counter values section in bytes: 128 per counter."""
    error_log_buffer_length: int = ERROR_LOG_LENGTH_MIN
    client_liveness_timeout_ns: int = 10_000_000_000
    start_timestamp_ms: int = 0
    pid: int = 0
    file_page_size: int = 4096

    @property
    def section_lengths(self) -> tuple[int, int, int, int, int]:
        """The lengths of the five sections, in file order."""
        return (
            self.to_driver_buffer_length,
            self.to_clients_buffer_length,
            self.counters_metadata_buffer_length,
            self.counters_values_buffer_length,
            self.error_log_buffer_length,
        )

    @property
    def section_offsets(self) -> tuple[int, int, int, int, int, int]:
        """The offset of each section, followed by the end of the last section."""
        ends = [HEADER_LENGTH]
        for length in self.section_lengths:
            ends.append(ends[-1] + length)
        return (ends[0], ends[1], ends[2], ends[3], ends[4], ends[5])

    @property
    def file_length(self) -> int:
        """The length of the file in bytes, rounded up to whole pages."""
        return int(align(self.section_offsets[-1], self.file_page_size))

    def encode(self) -> bytes:
        """Return the header as 128 bytes, with version 0."""
        lengths = struct.pack("<6i", 0, *self.section_lengths)
        times = (self.client_liveness_timeout_ns, self.start_timestamp_ms, self.pid)
        fields = lengths + struct.pack("<3qi", *times, self.file_page_size)
        return fields.ljust(HEADER_LENGTH, b"\0")

    @classmethod
    def decode(cls, array: np.ndarray) -> "CncHeader":
        """Read a header from the first 128 bytes of a file, without checking it."""
        ring, to_clients, metadata, values, errors = struct.unpack_from("<5i", array, LENGTHS)
        timeout_ns, start_ms, pid = struct.unpack_from("<3q", array, TIMES)
        (page_size,) = struct.unpack_from("<i", array, PAGE_SIZE)
        return cls(
            to_driver_buffer_length=ring,
            to_clients_buffer_length=to_clients,
            counters_metadata_buffer_length=metadata,
            counters_values_buffer_length=values,
            error_log_buffer_length=errors,
            client_liveness_timeout_ns=timeout_ns,
            start_timestamp_ms=start_ms,
            pid=pid,
            file_page_size=page_size,
        )

    def faults(self, file_length: int) -> list[str]:
        """Return an error message for each invalid section length, or one message if the sections
        do not fit into `file_length` bytes.
        """
        ring, to_clients, metadata, values, errors = self.section_lengths
        found = []
        if not ring_buffer.is_capacity(ring):
            found.append(f"to_driver_buffer_length={ring}: expected 768 plus a power of two >= 64")
        if not broadcast.is_capacity(to_clients):
            found.append(
                f"to_clients_buffer_length={to_clients}: expected 128 plus a power of two >= 64"
            )
        for name, length, unit in (
            ("counters_metadata_buffer_length", metadata, counters.METADATA_LENGTH),
            ("counters_values_buffer_length", values, counters.COUNTER_LENGTH),
            ("error_log_buffer_length", errors, 8),
        ):
            if length < unit or length % unit:
                found.append(f"{name}={length}: expected a positive multiple of {unit}")
        if not found and self.section_offsets[-1] > file_length:
            found.append(
                f"the sections end at {self.section_offsets[-1]}, but the file ends at "
                f"{file_length}"
            )
        return found

    def conclude(self) -> "CncHeader":
        """Validate the header of a new file.

        Raises ConfigurationError that lists all errors.
        """
        found = self.faults(I32_MAX)
        metadata, values = self.counters_metadata_buffer_length, self.counters_values_buffer_length
        for name, length, length_min in (
            ("to_driver_buffer_length", self.to_driver_buffer_length, RING_LENGTH_MIN),
            ("to_clients_buffer_length", self.to_clients_buffer_length, BROADCAST_LENGTH_MIN),
            ("counters_values_buffer_length", values, VALUES_LENGTH_MIN),
            ("error_log_buffer_length", self.error_log_buffer_length, ERROR_LOG_LENGTH_MIN),
        ):
            if length < length_min:
                found.append(f"{name}={length}: expected at least {length_min}")
        if values > VALUES_LENGTH_MAX:
            found.append(
                f"counters_values_buffer_length={values}: expected at most {VALUES_LENGTH_MAX}"
            )
        if metadata != values * METADATA_PER_VALUE:
            found.append(
                f"counters_metadata_buffer_length={metadata}: expected "
                f"{METADATA_PER_VALUE} x {values}"
            )
        page_size = self.file_page_size
        if not (4096 <= page_size <= 1 << 30 and is_power_of_two(page_size)):
            found.append(f"file_page_size={page_size}: expected a power of two from 4096 to 1 GiB")
        elif self.file_length > I32_MAX:
            found.append(f"file length {self.file_length}: expected at most {I32_MAX}")
        if self.client_liveness_timeout_ns <= 0:
            found.append(f"client_liveness_timeout_ns={self.client_liveness_timeout_ns}: not > 0")
        if found:
            raise ConfigurationError("; ".join(found))
        return self
