"""Stream geometry: the initial term id and term length, which convert term offsets to positions.

    SETUP      carries the initial term id and term length                    basis "SETUP"
    no SETUP   a full term ends at the term length, a power of two           basis "terms"
               a single term: positions do not depend on the term length     basis "one term"

Without a SETUP, positions count from the start of the first term seen. Distances are then correct,
but absolute positions are unknown, which the basis indicates. Term ids wrap, so they are compared
by difference.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

FROM_SETUP, FROM_TERMS, FROM_ONE_TERM, UNKNOWN = "SETUP", "terms", "one term", "unknown"
TERM_LENGTH_MIN = 1 << 16

FROM_SENDER = ("DATA", "PAD", "HEARTBEAT", "SETUP")
"""Types of the frames that a stream's sender sends to its destinations."""

StreamKey = tuple[int, int]
"""Identifies a stream: its session id and stream id."""


@dataclass(frozen=True)
class Endpoints:
    """The endpoints of a stream that are analysed, each in the form `address port`."""

    destinations: frozenset[str]
    receivers: frozenset[str]


@dataclass(frozen=True)
class Geometry:
    """A stream's initial term id and term length, and how they were determined."""

    initial_term_id: int
    term_length: int
    basis: str
    mtu: int | None
    problem: str = ""
    "The reason why positions may be wrong, or an empty string if they are reliable."
    endpoints: Endpoints | None = None
    "The endpoints that are analysed, or None if all are."


def wrapped(difference: int) -> int:
    """Wrap the difference between two term ids to a signed 32-bit number."""
    return (difference + (1 << 31)) % (1 << 32) - (1 << 31)


def learn_geometry(
    totals: pa.Table, endpoints: Mapping[StreamKey, Endpoints] | None = None
) -> dict[StreamKey, Geometry]:
    """Determine each stream's geometry from its frames at all vantage points.

    `endpoints`: those of the streams of which not all endpoints are analysed.
    """
    limited = endpoints or {}
    from_sender = pc.is_in(totals["frame_type"], pa.array(FROM_SENDER))
    rows: dict[StreamKey, list[dict[str, Any]]] = {}
    for row in totals.filter(from_sender).to_pylist():
        rows.setdefault((row["session_id"], row["stream_id"]), []).append(row)
    return {
        key: replace(_geometry(of_stream), endpoints=limited.get(key))
        for key, of_stream in sorted(rows.items())
    }


def _geometry(rows: list[dict[str, Any]]) -> Geometry:
    setups = [row for row in rows if row["frame_type"] == "SETUP"]
    if setups:
        last = max(setups, key=lambda row: row["last_ns"])
        geometries = {
            (row[name], row["term_length"])
            for row in setups
            for name in ("least_initial", "most_initial")
        }
        problem = "its SETUP frames contradict each other" if len(geometries) > 1 else ""
        if any(row["end_offset"] > last["term_length"] for row in rows):
            problem = "frames exceed the term length in its SETUP"
        return Geometry(last["most_initial"], last["term_length"], FROM_SETUP, last["mtu"], problem)
    first = min(rows, key=lambda row: row["first_ns"])["term_id"]
    terms = sorted({wrapped(row["term_id"] - first) for row in rows})
    initial = wrapped(first + terms[0])
    longest = max(row["end_offset"] for row in rows)
    length = max(TERM_LENGTH_MIN, 1 << (longest - 1).bit_length() if longest > 1 else 0)
    if len(terms) == 1:
        return Geometry(initial, length, FROM_ONE_TERM, None)
    if longest == length:
        return Geometry(initial, length, FROM_TERMS, None)
    return Geometry(
        initial, length, UNKNOWN, None, "no SETUP and no full term: the term length is a guess"
    )


def positions_in(
    geometry: Geometry, terms: NDArray[Any], offsets: NDArray[Any]
) -> NDArray[np.int64]:
    """Return the positions of a stream's frames, given their term ids and term offsets."""
    difference = terms.astype(np.int64) - geometry.initial_term_id
    difference = ((difference + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
    found: NDArray[np.int64] = difference * geometry.term_length + offsets
    return found
