"""Computes benchmark figures: the median and range of each driver or archive, and the ratio of
Windtunnel's median to that of Aeron.

    ratio = median of ours / median of the peer's: of the C driver, or of Java's archive

A floor limits the ratio: it is a minimum if more is better, and a maximum if less is better. A
figure without valid readings for both subjects has no ratio, and does not meet its floor.
"""

import json
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from windtunnel.harness.bench.measure import PERCENTILES, Reading
from windtunnel.harness.bench.plan import CALLS, CASES, BenchCase


@dataclass(frozen=True)
class Figure:
    """One quantity that is measured for each driver or each archive."""

    name: str
    case: str
    value: str
    """Key of this quantity in a reading's values."""
    unit: str
    is_more_better: bool
    peer: str = "c"
    """The driver or archive with which ours is compared."""


@dataclass(frozen=True)
class Spread:
    """The values of one figure from all valid measurements of a driver or archive."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def least(self) -> float:
        return min(self.values)

    @property
    def most(self) -> float:
        return max(self.values)


@dataclass(frozen=True)
class Comparison:
    """One figure compared between two drivers or archives, with the limit (floor) for the ratio."""

    figure: Figure
    ours: Spread | None
    peer: Spread | None
    floor: float | None

    @property
    def ratio(self) -> float | None:
        """The ratio of Windtunnel's median to that of Aeron's driver or archive, or None if either
        median is missing.
        """
        if self.ours is None or self.peer is None or self.peer.median <= 0:
            return None
        return self.ours.median / self.peer.median

    @property
    def holds(self) -> bool | None:
        """Whether the ratio meets its limit (floor), or None if it has no limit."""
        if self.floor is None:
            return None
        if self.ratio is None:
            return False
        return self.ratio >= self.floor if self.figure.is_more_better else self.ratio <= self.floor


_STREAM = (
    ("", "messages", "messages/s", True),
    ("-mb", "megabytes", "MB/s", True),
    ("-cpu", "processor", "ns/message", False),
)
"""The figures of each throughput case: suffix, key in a reading, unit, and whether more is
better.
"""


def _figures_of(case: BenchCase) -> list[Figure]:
    def figure(suffix: str, value: str, unit: str, is_more_better: bool) -> Figure:
        return Figure(case.name + suffix, case.name, value, unit, is_more_better)

    if case.kind == "startup":
        return [
            figure("", "startup", "ms", False),
            figure("-rss", "rss", "MB", False),
        ]
    if case.kind == "swarm":
        return [
            figure("", "trials", "trials/min", True),
            figure("-frames", "frames", "frames/trial", True),
        ]
    if case.kind == "archive":
        return [
            Figure(f"{case.name}-{way}{suffix}", case.name, f"{way}-{value}", unit, is_more, "java")
            for way in ("record", "replay")
            for suffix, value, unit, is_more in _STREAM
        ]
    if case.kind in CALLS:
        return [
            figure("", "messages", "messages/s", True),
            figure("-cpu", "processor", "ns/message", False),
        ]
    memory = figure("-rss", "rss", "MB", False)
    if case.kind == "echo":
        return [
            *(figure(f"-{name}", name, "us", False) for name in PERCENTILES),
            memory,
        ]
    return [*(figure(*each) for each in _STREAM), memory]


FIGURES = tuple(figure for case in CASES for figure in _figures_of(case))
NAMES = tuple(figure.name for figure in FIGURES)

DEFAULT_FLOORS = {
    "udp-1344": 3.0,
    "udp-32": 1.0,
    "ipc-32": 0.5,
    "rtt-udp-p50": 1.5,
    "rtt-ipc-p50": 1.5,
    "python-offer": 0.5,
    "python-poll": 0.5,
    "archive-1344-record": 1.0,
    "archive-1344-replay": 1.0,
}
assert set(DEFAULT_FLOORS) <= set(NAMES)


def read_floors(texts: Iterable[str]) -> dict[str, float]:
    """Return the limit (floor) for the ratio of each compared figure: the default limits,
    overridden by `name=ratio` arguments and by JSON files.

    A later argument overrides an earlier one. A file contains an object of names and ratios. Raises
    ValueError for an invalid argument or file, or OSError if a file cannot be read.
    """
    floors = dict(DEFAULT_FLOORS)
    for text in texts:
        name, mark, ratio = text.partition("=")
        pairs = {name: ratio} if mark and name in NAMES else _pairs_of_file(text)
        for key, value in pairs.items():
            if key not in NAMES:
                raise ValueError(f"expected one of the figures {', '.join(NAMES)}, found {key!r}")
            floors[key] = _ratio(key, value)
    return floors


def _ratio(name: str, value: object) -> float:
    try:
        ratio = float(value)  # type: ignore[arg-type]  # any value of JSON; refused below
    except (TypeError, ValueError):
        ratio = math.nan
    if not 0 < ratio < math.inf:
        raise ValueError(f"floor of {name}: expected a ratio above 0, found {value!r}")
    return ratio


def _pairs_of_file(text: str) -> dict[str, object]:
    path = Path(text)
    if "=" in text and not path.exists():
        raise ValueError(f"{text!r}: expected one of the figures {', '.join(NAMES)}")
    try:
        pairs = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: expected JSON: {error}") from error
    if not isinstance(pairs, dict):
        raise ValueError(f"{path}: expected a JSON object of figure names and ratios")
    return pairs


def compare(readings: Iterable[Reading], floors: dict[str, float]) -> list[Comparison]:
    """Compare every figure that was measured. The result is in the order of the cases."""
    kept = list(readings)
    measured = {reading.case for reading in kept}
    return [
        Comparison(
            figure,
            _spread(kept, figure, "ours"),
            _spread(kept, figure, figure.peer),
            floors.get(figure.name),
        )
        for figure in FIGURES
        if figure.case in measured
    ]


def _spread(readings: list[Reading], figure: Figure, driver: str) -> Spread | None:
    values = tuple(
        reading.values[figure.value]
        for reading in readings
        if reading.driver == driver and reading.case == figure.case and not reading.void
    )
    return Spread(values) if values else None
