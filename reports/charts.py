"""A run's chart document: its data series in the format that the page's chart script expects.

Times are in milliseconds since the first offer or, if it is unknown, since the run's first event.
Long lines and large sets of marks are reduced to fewer points. The page states the full number of
marks.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from windtunnel.harness.artifact.run.observed import Observations
from windtunnel.reports.counter_lines import Line
from windtunnel.reports.decimate import kept_indices
from windtunnel.reports.marks import KINDS, Marks
from windtunnel.reports.series import RunSeries, StreamSeries

POINTS_PER_LINE_MAX = 20_000
MARKS_PER_KIND_MAX = 20_000
COMPARED_MAX = 4_000
"""Maximum number of points per line in a comparison, which has the lines of several runs."""
SENT = "snd-pos"
COMPARED = {"lines": (SENT, "sub-pos"), "distances": ("in flight",)}
"""The lines that a comparison shows for each run."""
NS_PER_MS = 1e6


def chart_document(
    series: RunSeries, rule_names: list[str], observed: Observations | None = None
) -> dict[str, Any]:
    """Return the data of a run's charts as a document. Its numpy arrays are encoded later by the
    module `packing`.
    """
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
        "streams": [_stream(stream, start_ns, series.end_ns) for stream in series.streams],
    }


def comparison_document(runs: Sequence[tuple[str, RunSeries]]) -> dict[str, Any]:
    """Return one chart document for several runs. Times are relative to each run's first activity.

    Each stream has the lines of all runs that contain it, labelled with the run's name and coloured
    in the order of the runs. Sessions of observed streams that only one run has are left out.
    """
    ends_ms = [(series.active_ns[1] - series.active_ns[0]) / NS_PER_MS for _, series in runs]
    streams: dict[str, dict[str, Any]] = {}
    counts = Counter(
        name for _, series in runs for name in {each.traffic_id for each in series.streams}
    )
    for index, (name, series) in enumerate(runs):
        for stream in series.streams:
            if stream.observed and counts[stream.traffic_id] == 1:
                continue
            document = streams.setdefault(
                stream.traffic_id,
                _stream(replace(stream, lines=[], distances=[], marks=[]), 0, 0),
            )
            for key, names in COMPARED.items():
                document[key] += [
                    _compared(line, name, index, series.active_ns)
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


def _compared(line: Line, run: str, index: int, active_ns: tuple[int, int]) -> dict[str, Any]:
    start_ns, end_ns = active_ns
    shown = line.time_ns <= end_ns
    drawn = _line(
        Line(line.name, line.time_ns[shown], line.value[shown]), start_ns, end_ns, COMPARED_MAX
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


def _stream(stream: StreamSeries, start_ns: int, end_ns: int) -> dict[str, Any]:
    by_kind = {each.kind: each for each in stream.marks}
    return {
        "traffic": stream.traffic_id,
        "stream_id": stream.stream_id,
        "term_length": stream.term_length,
        "initial_term_id": stream.initial_term_id,
        "reliable": stream.reliable,
        "lines": [_line(line, start_ns, end_ns) for line in stream.lines],
        "distances": [_line(line, start_ns, end_ns) for line in stream.distances],
        "marks": [_marks(by_kind[kind], start_ns) for kind in KINDS if kind in by_kind],
    }


def _line(
    line: Line, start_ns: int, end_ns: int, points_max: int = POINTS_PER_LINE_MAX
) -> dict[str, Any]:
    kept = kept_indices(line.time_ns, line.value, points_max)
    # Samples are written only when a value changes, so the last value is valid until the run's end.
    time_ns = np.append(line.time_ns[kept], end_ns)
    value = np.append(line.value[kept], line.value[-1])
    return {"name": line.name, "t": (time_ns - start_ns) / NS_PER_MS, "v": value}


def _marks(marks: Marks, start_ns: int) -> dict[str, Any]:
    count = len(marks.time_ns)
    step = max(1, -(-count // MARKS_PER_KIND_MAX))
    return {
        "kind": marks.kind,
        "count": count,
        "t": (marks.time_ns[::step] - start_ns) / NS_PER_MS,
        "position": marks.position[::step],
        "length": marks.length[::step],
        "detail": marks.detail[::step],
    }
