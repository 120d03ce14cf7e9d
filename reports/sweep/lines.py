"""The figures of a sweep as lines: a value for each place on the horizontal axis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from windtunnel.harness.artifact.rate_text import rate_unit
from windtunnel.harness.artifact.run.result_row import NS_PER_MS, ResultRow
from windtunnel.harness.artifact.run.verdict import result_rows_of
from windtunnel.reports.evidence import RunDocuments

Stream = tuple[str, str, str]
"""The traffic id, the sending and the receiving host of a stream."""


@dataclass(frozen=True)
class Figure:
    """A figure of a stream that is drawn over the sweep."""

    title: str
    name: str
    "The field of a row that has the figure."
    unit_for: Callable[[Iterable[float]], tuple[float, str]]
    "Returns the unit in which several values are drawn, and its name."

    def value(self, row: ResultRow) -> float | None:
        """Return the figure of a row, without a unit."""
        found = getattr(row, self.name)
        return None if found is None else float(found)


FIGURES = (
    Figure("goodput", "reached_bytes_per_s", rate_unit),
    Figure("repair time, 99 %", "repair_p99_ns", lambda values: (NS_PER_MS, "ms")),
)


@dataclass(frozen=True)
class Line:
    """The points of one combination of values: one for each place on the horizontal axis."""

    name: str
    values: tuple[float | None, ...]

    @property
    def known(self) -> list[float]:
        """The values that are known."""
        return [each for each in self.values if each is not None]

    def divided_by(self, unit: float) -> Line:
        """Return the line in another unit."""
        return Line(self.name, tuple(None if each is None else each / unit for each in self.values))


def swept_names(runs: Sequence[RunDocuments]) -> list[str]:
    """Return the names of the values that differ between the runs of a sweep."""
    settings = [run.summary.settings for run in runs if run.summary is not None]
    names = dict.fromkeys(name for each in settings for name in each)
    return [name for name in names if len({each.get(name) for each in settings}) > 1]


def lines_of(
    runs: Sequence[RunDocuments],
    stream: Stream,
    names: Sequence[str],
    value: Callable[[ResultRow], float | None],
) -> tuple[list[str], list[Line]]:
    """Return the texts on the horizontal axis, and the lines of a stream's figure."""
    first, *others = names
    axis: dict[str, None] = {}
    found: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for run in runs:
        settings = run.summary.settings if run.summary is not None else {}
        place = settings.get(first, "")
        axis[place] = None
        points = found.setdefault(tuple(settings.get(each, "") for each in others), {})
        for row in result_rows_of(run.verdict):
            figure = value(row)
            if (row.traffic, row.from_host, row.to_host) == stream and figure is not None:
                points.setdefault(place, []).append(figure)
    lines = [
        Line(
            ", ".join(f"{short(name)} {text}" for name, text in zip(others, key, strict=True)),
            tuple(median(points[place]) if place in points else None for place in axis),
        )
        for key, points in found.items()
    ]
    return list(axis), lines


def short(name: str) -> str:
    """Return the last part of a value's name."""
    return name.rpartition(".")[2]
