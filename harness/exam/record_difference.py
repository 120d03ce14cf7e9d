"""Finds the first record or byte that differs between two files of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from windtunnel.harness.artifact.records import Records, read_records

ABSENT = "nothing"
_BYTE = np.dtype(np.uint8)


class Found(NamedTuple):
    """A difference between two runs."""

    place: str
    time_ns: int | None
    "Time on the run's clock, or None if the evidence has no times."
    first: str
    second: str


def times_of(records: Records | None) -> list[int]:
    """Return the times of records that have one, or an empty list if their file is missing."""
    return [] if records is None else records["time_ns"].tolist()


def record_differences(
    place: str,
    pair: Sequence[Records | None],
    text: Callable[[Any], str],
    times: Sequence[list[int]],
) -> Iterator[Found]:
    """Compare records, and their times in a file or column of the same order. Yields the first
    difference.
    """
    one, two = (np.empty(0, _BYTE) if each is None else each for each in pair)
    unequal = _first_unequal(one, two), _first_unequal(np.array(times[0]), np.array(times[1]))
    at = min((each for each in unequal if each is not None), default=None)
    if at is None:
        return
    now_ns = min((each[at] for each in times if at < len(each)), default=None)
    first, second = (text(each[at]) if at < each.size else ABSENT for each in (one, two))
    if first == second:
        first, second = (
            f"{first} at {each[at]} ns" if at < len(each) else ABSENT for each in times
        )
    yield Found(place, now_ns, first, second)


def byte_differences(place: str, first: Path, second: Path) -> Iterator[Found]:
    """Compare files byte by byte. Yields the first difference. A missing file is like an empty
    one.
    """
    one, two = (
        np.empty(0, _BYTE) if each is None else each
        for each in (read_records(file, _BYTE) for file in (first, second))
    )
    at = _first_unequal(one, two)
    if at is not None:
        texts = [each[at : at + 8].tobytes().hex() or ABSENT for each in (one, two)]
        yield Found(f"{place}, byte {at}", None, texts[0], texts[1])


def _first_unequal(one: Records, two: Records) -> int | None:
    """Return the index of the first unequal record, or None if the arrays are equal."""
    count = min(one.size, two.size)
    if count:
        rows = [
            np.ascontiguousarray(each[:count]).view(_BYTE).reshape(count, -1) for each in (one, two)
        ]
        found = np.flatnonzero((rows[0] != rows[1]).any(axis=1))
        if found.size:
            return int(found[0])
    return count if one.size != two.size else None
