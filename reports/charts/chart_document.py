"""A run's chart document: its data series in the format that the page's chart script expects.

Times are in milliseconds since the first offer or, if it is unknown, since the run's first event.
Long lines and large sets of marks are reduced to fewer points. The page states the full number of
marks.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from windtunnel.harness.artifact.run.observed import Observations
from windtunnel.reports.charts.counter_lines import Line
from windtunnel.reports.charts.decimation import fair_limit, kept_indices, level_indices
from windtunnel.reports.charts.marks import KINDS, LOSSES, Marks
from windtunnel.reports.charts.series import RunSeries, StreamSeries

POINTS_PER_LINE_MAX = 20_000
MARKS_PER_KIND_MAX = 20_000
POINTS_MAX = 1_000_000
MARKS_MAX = 500_000
"""Maximum number of points and marks on a page. A point takes 2 to 4 bytes, a mark up to 10."""
COMPARED_MAX = 4_000
COMPARED_POINTS_MAX = 200_000
"""Maximum number of points per line, and of all lines, in a comparison of several runs."""
SENT = "snd-pos"
COMPARED = {"lines": (SENT, "sub-pos"), "distances": ("in flight",)}
"""The lines that a comparison shows for each run."""
NS_PER_MS = 1e6


class Limits(NamedTuple):
    """How many points each line, and how many marks each kind of a stream may have."""

    points: int = POINTS_PER_LINE_MAX
    marks: int = MARKS_PER_KIND_MAX


def limits_of(runs: Sequence[RunSeries]) -> Limits:
    """Return the limits for a page with the charts of all the given runs."""
    streams = [stream for series in runs for stream in series.streams]
    points = [_needed(line) for stream in streams for line in stream.lines + stream.distances]
    marks = [len(each.time_ns) for stream in streams for each in stream.marks]
    return Limits(
        min(POINTS_PER_LINE_MAX, fair_limit(points, POINTS_MAX)),
        min(MARKS_PER_KIND_MAX, fair_limit(marks, MARKS_MAX)),
    )


def is_reduced(series: RunSeries, limits: Limits) -> bool:
    """Return whether a line of a run is drawn with fewer points than it has."""
    lines = (line for stream in series.streams for line in stream.lines + stream.distances)
    return any(_needed(line) > limits.points for line in lines)


def _needed(line: Line) -> int:
    return len(level_indices(line.value))


def chart_document(
    series: RunSeries,
    rule_names: list[str],
    observed: Observations | None = None,
    limits: Limits | None = None,
) -> dict[str, Any]:
    """Return the data of a run's charts as a document. Its numpy arrays are encoded later by the
    module `packing`.
    """
    limits = limits or Limits()
    observed = observed or Observations()
    is_within = series.start_ns <= observed.start_ns <= series.end_ns
    start_ns = observed.start_ns if is_within else series.start_ns
    return {
        "start_ns": str(start_ns),
        "begin_ms": (series.start_ns - start_ns) / NS_PER_MS,
        "duration_ms": (series.end_ns - start_ns) / NS_PER_MS,
        "is_delivered": _is_delivered(series),
        "active_ms": [(each - start_ns) / NS_PER_MS for each in series.active_ns],
        "rules": rule_names,
        "bands": [
            {
                "kind": each.kind,
                "name": f"{each.kind} {each.id}: {each.what}",
                "from": (each.began_ns - start_ns) / NS_PER_MS,
                "to": (each.ended_ns - start_ns) / NS_PER_MS,
            }
            for each in observed.interruptions
        ],
        "streams": [
            _stream(each, start_ns, series.end_ns, limits)
            for each in _eventful_first(series.streams)
        ],
    }


def _eventful_first(streams: Sequence[StreamSeries]) -> list[StreamSeries]:
    """Return streams in the order of their tabs: observed ones without losses, retransmits and NAKs
    come last. The chart shows the first stream.
    """
    kinds = *LOSSES, "NAK", "retransmit"
    return sorted(streams, key=lambda each: each.observed and not any(map(each.count, kinds)))


def comparison_document(runs: Sequence[tuple[str, RunSeries]]) -> dict[str, Any]:
    """Return one chart document for several runs. Times are relative to each run's first activity.

    Each stream has the lines of all runs that contain it, labelled with the run's name and coloured
    in the order of the runs. Sessions of observed streams that only one run has are left out.
    """
    ends_ms = [(series.active_ns[1] - series.active_ns[0]) / NS_PER_MS for _, series in runs]
    streams: dict[str, dict[str, Any]] = {}
    points_max = _compared_points([series for _, series in runs])
    counts = Counter(
        name for _, series in runs for name in {each.traffic_id for each in series.streams}
    )
    for index, (name, series) in enumerate(runs):
        for stream in series.streams:
            if stream.observed and counts[stream.traffic_id] == 1:
                continue
            document = streams.setdefault(
                stream.traffic_id,
                _stream(replace(stream, lines=[], distances=[], marks=[]), 0, 0, Limits()),
            )
            for key, names in COMPARED.items():
                document[key] += [
                    _compared(line, name, index, series.active_ns, points_max)
                    for line in getattr(stream, key)
                    if line.name in names
                ]
    return {
        "start_ns": "0",
        "begin_ms": 0.0,
        "duration_ms": max(ends_ms, default=0.0),
        "is_delivered": False,
        "active_ms": [0.0, max(ends_ms, default=0.0)],
        "rules": [],
        "bands": [],
        "streams": list(streams.values()),
    }


def _compared_points(runs: Sequence[RunSeries]) -> int:
    """Return how many points each line of a comparison may have."""
    lines = [
        line
        for series in runs
        for stream in series.streams
        for key, names in COMPARED.items()
        for line in getattr(stream, key)
        if line.name in names
    ]
    return min(COMPARED_MAX, fair_limit([_needed(each) for each in lines], COMPARED_POINTS_MAX))


def _compared(
    line: Line, run: str, index: int, active_ns: tuple[int, int], points_max: int
) -> dict[str, Any]:
    start_ns, end_ns = active_ns
    shown = line.time_ns <= end_ns
    drawn = _line(
        Line(line.name, line.time_ns[shown], line.value[shown]), start_ns, end_ns, points_max
    )
    dash = {"dash": "dot"} if line.name == SENT else {}
    return {**drawn, "name": f"{line.name} of {run}", "colour": f"run-{index + 1}", **dash}


def _is_delivered(series: RunSeries) -> bool:
    """Return whether all bytes sent on each stream were also consumed."""
    for stream in series.streams:
        last = {line.name: int(line.value[-1]) for line in stream.lines}
        if last.get("snd-pos") is None or last.get("snd-pos") != last.get("sub-pos"):
            return False
    return True


def _stream(stream: StreamSeries, start_ns: int, end_ns: int, limits: Limits) -> dict[str, Any]:
    by_kind = {each.kind: each for each in stream.marks}
    return {
        "traffic": stream.traffic_id,
        "stream_id": stream.stream_id,
        "term_length": stream.term_length,
        "initial_term_id": stream.initial_term_id,
        "reliable": stream.reliable,
        "lines": [_line(line, start_ns, end_ns, limits.points) for line in stream.lines],
        "distances": [_line(line, start_ns, end_ns, limits.points) for line in stream.distances],
        "marks": [
            _marks(by_kind[kind], start_ns, limits.marks) for kind in KINDS if kind in by_kind
        ],
    }


def _line(line: Line, start_ns: int, end_ns: int, points_max: int) -> dict[str, Any]:
    kept = level_indices(line.value)
    kept = kept[kept_indices(line.time_ns[kept], line.value[kept], points_max)]
    # Samples are written only when a value changes, so the last value is valid until the run's end.
    time_ns = np.append(line.time_ns[kept], end_ns)
    value = np.append(line.value[kept], line.value[-1])
    return {"name": line.name, "t": (time_ns - start_ns) / NS_PER_MS, "v": value}


def _marks(marks: Marks, start_ns: int, marks_max: int) -> dict[str, Any]:
    count = len(marks.time_ns)
    step = max(1, -(-count // max(1, marks_max)))
    return {
        "kind": marks.kind,
        "count": count,
        "t": (marks.time_ns[::step] - start_ns) / NS_PER_MS,
        "position": marks.position[::step],
        "length": marks.length[::step],
        "detail": marks.detail[::step],
    }
