"""The driver's cnc.dat, read independently: header, counters, distinct error log.

    0        128            ring             broadcast        metadata          values       errors
    +--------+--------------+----------------+----------------+-----------------+------------+
    | header | to driver    | to clients     | 512 a counter  | 128 a counter   | error log  |
    +--------+--------------+----------------+----------------+-----------------+------------+

Works on a live mapping (values change under the reader) and on a saved file alike; never writes.
Source: specification section 6.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.counter_sample import CounterFacts
from windtunnel.harness.artifact.host.host_facts import ErrorObservation

HEADER_LENGTH = 128
RING_TRAILER_LENGTH = 768
RING_HEARTBEAT_OFFSET = 640
LABEL_LENGTH_MAX = 380
ERROR_HEADER_LENGTH = 24
UNUSED, ALLOCATED, RECLAIMED = 0, 1, -1
_COUNTERS_A_LOOK = 256
"""So that a search for the first unused id does not touch every page of the file."""

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
    """The bytes cannot be a cnc file; the text says what was expected and what was found."""


@dataclass(frozen=True)
class CncFile:
    """Views of the sections of a cnc file."""

    version: int
    pid: int
    start_timestamp_ms: int
    client_liveness_timeout_ns: int
    heartbeat: NDArray[np.int64]
    "One element: when the driver's conductor last ran, epoch milliseconds; -1 once closed."
    metadata: NDArray[Any]
    "METADATA, one a counter id."
    values: NDArray[Any]
    "VALUE, one a counter id."
    error_log: NDArray[np.uint8]

    def counter_count(self) -> int:
        """Counter ids ever taken: allocation is dense, so the first unused one ends the list."""
        states = self.metadata["state"]
        for start in range(0, len(states), _COUNTERS_A_LOOK):
            unused = np.flatnonzero(states[start : start + _COUNTERS_A_LOOK] == UNUSED)
            if len(unused):
                return start + int(unused[0])
        return len(states)

    def counter(self, counter_id: int) -> CounterFacts | None:
        """What a counter is now, or None when it is not allocated."""
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
        """All allocated counters, by id."""
        found = (self.counter(counter_id) for counter_id in range(self.counter_count()))
        return [counter for counter in found if counter is not None]

    def errors(self) -> list[ErrorObservation]:
        """The distinct error log, oldest entry first."""
        return self.read_error_log()[0]

    def read_error_log(self) -> tuple[list[ErrorObservation], str]:
        """The distinct error log, and what is wrong behind its last entry; empty when nothing is.

        An entry's length is written last, so one that a driver is just making is no damage.
        """
        entries: list[ErrorObservation] = []
        at = 0
        log = self.error_log
        while at + ERROR_HEADER_LENGTH <= len(log):
            length, count = (int(each) for each in log[at : at + 8].view("<i4"))
            if length == 0:
                break
            if length < ERROR_HEADER_LENGTH or at + length > len(log):
                return entries, f"entry {len(entries)} at {at}: its length is {length}"
            last_ms, first_ms = (int(each) for each in log[at + 8 : at + 24].view("<i8"))
            text = log[at + ERROR_HEADER_LENGTH : at + length].tobytes()
            entries.append(
                ErrorObservation(count, first_ms, last_ms, text.decode("utf-8", "replace"))
            )
            at += (length + 7) & ~7
        return entries, ""


def section_ends(buf: NDArray[np.uint8]) -> list[int] | None:
    """Where each section ends, in the order of the file; None while the header is not finished.

    Raises CncFileError when no driver writes such a header. The file may be shorter than it says.
    """
    if len(buf) < HEADER_LENGTH:
        return None
    header = buf[: HEADER.itemsize].view(HEADER)[0]
    version = int(header["cnc_version"])
    if version == 0:
        return None
    if version >> 16 != 0:
        raise CncFileError(f"cnc version {version:#x}: expected major version 0")
    names = ("to_driver", "to_clients", "metadata", "values", "error_log")
    lengths = [int(header[f"{name}_length"]) for name in names]
    if min(lengths) < 0 or lengths[0] < RING_TRAILER_LENGTH:
        raise CncFileError(f"section lengths {lengths}: not those of a cnc file")
    ends: list[int] = (HEADER_LENGTH + np.cumsum(lengths)).tolist()
    return ends


def read_cnc(buf: NDArray[np.uint8]) -> CncFile | None:
    """Views of the sections, or None while the driver has not finished making the file."""
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
    """A cnc file mapped read-only, or None while it is missing or the driver has not finished it.

    The views hold the mapping, and stay valid after the driver has removed the file.
    """
    try:
        if path.stat().st_size < HEADER_LENGTH:
            return None
        mapped = np.memmap(path, dtype=np.uint8, mode="r")
    except OSError:
        return None
    return read_cnc(np.asarray(mapped))
