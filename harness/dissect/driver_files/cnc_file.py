"""Parser for a driver's cnc.dat: header, counters, distinct error log.

    0        128            ring             broadcast        metadata          values       errors
    +--------+--------------+----------------+----------------+-----------------+------------+
    | header | to driver    | to clients     | 512 / counter  | 128 / counter   | error log  |
    +--------+--------------+----------------+----------------+-----------------+------------+

The parser reads a live mapping, whose values may change at any time, or a saved file. It never
writes. Source: specification section 6.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.counter_sample import CounterFacts
from windtunnel.harness.artifact.host.host_facts import ErrorObservation
from windtunnel.harness.artifact.regular_file import UnsafeFileError, map_bytes

HEADER_LENGTH = 128
RING_TRAILER_LENGTH = 768
RING_HEARTBEAT_OFFSET = 640
LABEL_LENGTH_MAX = 380
ERROR_HEADER_LENGTH = 24
ERRORS_MAX = 200_000
"""Maximum number of entries that are read. An error log of the default length has room for less."""
UNUSED, ALLOCATED, RECLAIMED = 0, 1, -1
_COUNTERS_A_LOOK = 256
"""Number of counters examined at a time in the search for the first unused counter id, so that
large parts of the file need not be read.
"""

HEADER = np.dtype(
    [
        ("cnc_version", "<i4"),
        ("to_driver_length", "<i4"),
        ("to_clients_length", "<i4"),
        ("metadata_length", "<i4"),
        ("values_length", "<i4"),
        ("error_log_length", "<i4"),
        ("client_liveness_timeout_ns", "<i8"),
        ("start_timestamp_ms", "<i8"),
        ("pid", "<i8"),
        ("file_page_size", "<i4"),
    ]
)
METADATA = np.dtype(
    [
        ("state", "<i4"),
        ("type_id", "<i4"),
        ("free_for_reuse_deadline_ms", "<i8"),
        ("key", "u1", (112,)),
        ("label_length", "<i4"),
        ("label", "u1", (LABEL_LENGTH_MAX,)),
    ]
)
VALUE = np.dtype(
    [
        ("value", "<i8"),
        ("registration_id", "<i8"),
        ("owner_id", "<i8"),
        ("reference_id", "<i8"),
        ("padding", "u1", (96,)),
    ]
)
assert METADATA.itemsize == 512
assert VALUE.itemsize == 128


class CncFileError(ValueError):
    """The bytes are not a valid cnc file. The message gives the expected and actual values."""


@dataclass(frozen=True)
class CncFile:
    """Views of the sections in a cnc file."""

    version: int
    pid: int
    start_timestamp_ms: int
    client_liveness_timeout_ns: int
    heartbeat: NDArray[np.int64]
    "Array of one element: the conductor's last heartbeat in epoch milliseconds, or -1 "
    "after a normal shutdown."
    metadata: NDArray[Any]
    "Array of METADATA, one element per counter id."
    values: NDArray[Any]
    "Array of VALUE, one element per counter id."
    error_log: NDArray[np.uint8]

    def counter_count(self) -> int:
        """Return the number of counter ids that were ever used. Ids are allocated densely."""
        states = self.metadata["state"]
        for start in range(0, len(states), _COUNTERS_A_LOOK):
            unused = np.flatnonzero(states[start : start + _COUNTERS_A_LOOK] == UNUSED)
            if len(unused):
                return start + int(unused[0])
        return len(states)

    def counter(self, counter_id: int) -> CounterFacts | None:
        """Return a counter's current value and metadata, or None if it is not allocated."""
        meta, value = self.metadata[counter_id], self.values[counter_id]
        if meta["state"] != ALLOCATED:
            return None
        label_length = min(max(int(meta["label_length"]), 0), LABEL_LENGTH_MAX)
        return CounterFacts(
            counter_id=counter_id,
            type_id=int(meta["type_id"]),
            registration_id=int(value["registration_id"]),
            owner_id=int(value["owner_id"]),
            reference_id=int(value["reference_id"]),
            label=meta["label"][:label_length].tobytes().decode("utf-8", "replace"),
            key_hex=meta["key"].tobytes().hex(),
            final_value=int(value["value"]),
        )

    def counters(self) -> list[CounterFacts]:
        """Return all allocated counters, sorted by id."""
        found = (self.counter(counter_id) for counter_id in range(self.counter_count()))
        return [counter for counter in found if counter is not None]

    def errors(self) -> list[ErrorObservation]:
        """Return the entries of the distinct error log, oldest first."""
        return self.read_error_log()[0]

    def read_error_log(self) -> tuple[list[ErrorObservation], str]:
        """Return the entries of the distinct error log, and a description of the invalid entry that
        ends the log early, if there is one.

        The length of an entry is written last, so an incomplete entry is not an error.
        """
        entries: list[ErrorObservation] = []
        at = 0
        log = self.error_log
        while at + ERROR_HEADER_LENGTH <= len(log):
            length, count = (int(each) for each in log[at : at + 8].view("<i4"))
            if length == 0:
                break
            if len(entries) == ERRORS_MAX:
                return entries, f"expected at most {ERRORS_MAX} entries, found more"
            if length < ERROR_HEADER_LENGTH or at + length > len(log):
                return entries, f"entry {len(entries)} at {at}: invalid length {length}"
            last_ms, first_ms = (int(each) for each in log[at + 8 : at + 24].view("<i8"))
            text = log[at + ERROR_HEADER_LENGTH : at + length].tobytes()
            entries.append(
                ErrorObservation(count, first_ms, last_ms, text.decode("utf-8", "replace"))
            )
            at += (length + 7) & ~7
        return entries, ""


def section_ends(buf: NDArray[np.uint8]) -> list[int] | None:
    """Return the end offsets of all sections in file order, or None if the header is incomplete.

    Raises CncFileError if the header is invalid. The file may be shorter than these offsets.
    """
    if len(buf) < HEADER_LENGTH:
        return None
    header = buf[: HEADER.itemsize].view(HEADER)[0]
    version = int(header["cnc_version"])
    if version == 0:
        return None
    if version >> 16 != 0:
        raise CncFileError(f"cnc version: expected major version 0, found {version:#x}")
    names = ("to_driver", "to_clients", "metadata", "values", "error_log")
    lengths = [int(header[f"{name}_length"]) for name in names]
    if min(lengths) < 0 or lengths[0] < RING_TRAILER_LENGTH:
        text = f"expected at least 0, and {RING_TRAILER_LENGTH} for the first"
        raise CncFileError(f"section lengths: {text}, found {lengths}")
    ends: list[int] = (HEADER_LENGTH + np.cumsum(lengths)).tolist()
    return ends


def read_cnc(buf: NDArray[np.uint8]) -> CncFile | None:
    """Return views of a cnc file's sections, or None if the driver has not initialized it yet."""
    ends = section_ends(buf)
    if ends is None or ends[-1] > len(buf):
        return None
    header = buf[: HEADER.itemsize].view(HEADER)[0]
    to_driver_end, metadata_start, metadata_end, values_end, error_end = ends
    heartbeat_at = to_driver_end - RING_TRAILER_LENGTH + RING_HEARTBEAT_OFFSET
    values_count = (values_end - metadata_end) // VALUE.itemsize
    count = min(values_count, (metadata_end - metadata_start) // METADATA.itemsize)
    metadata = buf[metadata_start : metadata_start + count * METADATA.itemsize]
    values = buf[metadata_end : metadata_end + count * VALUE.itemsize]
    return CncFile(
        version=int(header["cnc_version"]),
        pid=int(header["pid"]),
        start_timestamp_ms=int(header["start_timestamp_ms"]),
        client_liveness_timeout_ns=int(header["client_liveness_timeout_ns"]),
        heartbeat=buf[heartbeat_at : heartbeat_at + 8].view("<i8"),
        metadata=metadata.view(METADATA),
        values=values.view(VALUE),
        error_log=buf[values_end:error_end],
    )


def map_cnc(path: Path) -> CncFile | None:
    """Map a cnc file read-only. Returns None if it is missing or not initialized yet.

    The views keep the mapping alive, even after the driver has removed the file. Raises
    UnsafeFileError if the path is not a regular file, such as a symbolic link.
    """
    try:
        return read_cnc(map_bytes(path))
    except UnsafeFileError:
        raise
    except OSError:
        return None
