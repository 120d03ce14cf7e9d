"""The results of several runs side by side, with their differences from the first run, and the
parameters in which the runs differ.

                first          second
    seed        1              2
    goodput     3.10 MB/s      2.33 MB/s (-25 %)
    NAKs        12             15 (+3)

A stream is identified by its name, its publisher's and its subscriber's host, so runs of different
scenarios can be compared as far as their streams have the same names. Of streams that the scenario
does not name, the sessions, whose ids are random, are taken together.
"""

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from windtunnel.harness.artifact.run.result_row import (
    FOUND_MAX,
    UNKNOWN,
    ResultRow,
    duration,
)

SCHEMA = "windtunnel-comparison/1"
PARAMETERS_MAX = 256
"""Maximum number of parameters in the document."""
SUMS = "lost_frames", "lost_bytes", "resent_frames", "resent_bytes", "gaps", "naks"
MAXIMA = ("longest_silence_ns",)
"""The figures of a stream that was found which are those of all its sessions together."""
SAME = "="
RATE, COUNT, DURATION = "rate", "count", "duration"
MEASURES: dict[str, tuple[str, tuple[str, ...]]] = {
    "goodput": (RATE, ("reached_bytes_per_s",)),
    "messages/s": (RATE, ("reached_messages_per_s",)),
    "delivered": (COUNT, ("delivered_messages",)),
    "latency p50/p99/max": (DURATION, ("latency_p50_ns", "latency_p99_ns", "latency_max_ns")),
    "longest silence": (DURATION, ("longest_silence_ns",)),
    "repair p50/p99": (DURATION, ("repair_p50_ns", "repair_p99_ns")),
    "lost": (COUNT, ("lost_frames",)),
    "sent again": (COUNT, ("resent_frames",)),
    "NAKs": (COUNT, ("naks",)),
    "stalled": (DURATION, ("stalled_total_ns",)),
    "finished after": (DURATION, ("finished_ns",)),
}
"""The kind and the fields of the figures that are compared, by the title of a row's cell."""


@dataclass(frozen=True)
class ComparedRun:
    """One of several runs that are compared."""

    name: str
    "Name of the run, which differs from the names of the others."
    outcome: str
    rows: tuple[ResultRow, ...]
    parameters: Mapping[str, str] | None = None
    "The parameters of the run by name, without those that have a default, or None if unknown."
    unknown: str = ""
    "The reason why the parameters are unknown."


@dataclass(frozen=True)
class ComparedParameter:
    """A parameter that differs between the compared runs. A run in which it has its default, or
    whose parameters are unknown, has None.
    """

    name: str
    values: tuple[str | None, ...]


@dataclass(frozen=True)
class ComparedStream:
    """The figures of one stream at one subscriber in each compared run. The figures of a run
    without the stream are None.
    """

    traffic: str
    from_host: str
    to_host: str
    rows: tuple[ResultRow | None, ...]

    @property
    def name(self) -> str:
        return f"{self.traffic}: {self.from_host} to {self.to_host}"

    @property
    def is_found(self) -> bool:
        """Whether no scenario names the stream."""
        return all(row is None or row.found_stream is not None for row in self.rows)

    @property
    def worst(self) -> tuple[int, int, int, int]:
        """Of the run in which most frames were lost: the numbers of them, of retransmits and NAKs,
        and the longest silence.
        """
        rows = (row for row in self.rows if row is not None)
        return max((*row.events, row.longest_silence_ns or 0) for row in rows)

    def brief_cells(self) -> list[str]:
        """Return one text for each run, with its most important figures."""
        return brief_cells([self])

    def cells(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the title of each figure, with a list of texts: the figure in each run and, if
        known, its difference from the first run.
        """
        texts = [{} if row is None else dict(row.cells()) for row in self.rows]
        for title in MEASURES:
            shown = []
            for row, text in zip(self.rows, texts, strict=True):
                change = self._change(title, row)
                shown.append(text.get(title, UNKNOWN) + (f" ({change})" if change else ""))
            yield title, shown

    def differences(self) -> list[dict[str, float] | None]:
        """Return the numeric differences of each run from the first run, by field name. A run
        without this stream has None.
        """
        return [None if row is None else self._differences(row) for row in self.rows]

    @property
    def _first(self) -> ResultRow | None:
        return self.rows[0]

    def _differences(self, row: ResultRow) -> dict[str, float]:
        if self._first is None:
            return {}
        names = [each.name for each in fields(ResultRow)] + ["stalled_total_ns"]
        pairs = ((name, getattr(self._first, name), getattr(row, name)) for name in names)
        return {
            name: new - old
            for name, old, new in pairs
            if isinstance(old, int | float) and isinstance(new, int | float)
        }

    def _change(self, title: str, row: ResultRow | None) -> str:
        """Describe the difference of one figure from the first run: "=" if there is none, and an
        empty string if it is unknown.
        """
        if row is None or row is self._first or self._first is None:
            return ""
        kind, names = MEASURES[title]
        changes = self._differences(row)
        parts = [_text(kind, changes.get(name), getattr(self._first, name)) for name in names]
        if set(parts) == {UNKNOWN}:
            return ""
        return SAME if set(parts) == {SAME} else " / ".join(parts)


def compared_streams(runs: Sequence[ComparedRun]) -> list[ComparedStream]:
    """Return the streams of all compared runs, in the order in which they first occur."""
    by_run = [_by_name(run.rows) for run in runs]
    names = dict.fromkeys(name for rows in by_run for name in rows)
    return [ComparedStream(*name, tuple(rows.get(name) for rows in by_run)) for name in names]


def _by_name(rows: Sequence[ResultRow]) -> dict[tuple[str, str, str], ResultRow]:
    found: dict[tuple[str, str, str], ResultRow] = {}
    for row in rows:
        if row.found_stream is not None:
            row = replace(row, traffic=f"stream-{row.found_stream}")
        name = row.traffic, row.from_host, row.to_host
        is_session = row.found_stream is not None and name in found
        found[name] = _together(found[name], row) if is_session else row
    return found


def _together(one: ResultRow, other: ResultRow) -> ResultRow:
    """Return the figures of two sessions of a stream, as far as those of both are known."""
    made: dict[str, Any] = {}
    for names, combine in ((SUMS, operator.add), (MAXIMA, max)):
        for name in names:
            pair = getattr(one, name), getattr(other, name)
            if None not in pair:
                made[name] = combine(*pair)
    head = one.traffic, one.from_host, one.to_host, one.found_stream
    return ResultRow(*head, **made)


def found_first(
    streams: Sequence[ComparedStream],
) -> tuple[list[ComparedStream], list[ComparedStream], list[ComparedStream]]:
    """Return the streams that the scenarios name, and those of the others to show, which lost most,
    and not to show.
    """
    named = [each for each in streams if not each.is_found]
    found = [each for each in streams if each.is_found]
    found.sort(key=lambda each: each.worst, reverse=True)
    return named, found[:FOUND_MAX], found[FOUND_MAX:]


def brief_cells(streams: Sequence[ComparedStream]) -> list[str]:
    """Return one text for each run, with the most important figures of several streams."""
    by_run = zip(*(each.rows for each in streams), strict=True)
    return [_brief([row for row in rows if row is not None]) for rows in by_run]


def different_parameters(runs: Sequence[ComparedRun]) -> list[ComparedParameter]:
    """Return the parameters that differ between the runs whose parameters are known."""
    known = [run.parameters for run in runs if run.parameters is not None]
    names = dict.fromkeys(name for each in known for name in each)
    return [
        ComparedParameter(name, tuple((run.parameters or {}).get(name) for run in runs))
        for name in names
        if len({each.get(name) for each in known}) > 1
    ]


def comparison_document(runs: Sequence[ComparedRun]) -> dict[str, Any]:
    """Return the comparison of several runs as a JSON document."""
    parameters = different_parameters(runs)
    return {
        "schema": SCHEMA,
        "runs": [_run_document(run) for run in runs],
        "parameters": [
            {"name": each.name, "values": list(each.values)} for each in parameters[:PARAMETERS_MAX]
        ],
        "parameters_left_out": len(parameters[PARAMETERS_MAX:]),
        "streams": [
            {
                "traffic": each.traffic,
                "from_host": each.from_host,
                "to_host": each.to_host,
                "results": [None if row is None else row.as_document() for row in each.rows],
                "differences": each.differences(),
            }
            for each in compared_streams(runs)
        ],
    }


def _run_document(run: ComparedRun) -> dict[str, str]:
    unknown = {"parameters_unknown": run.unknown} if run.unknown else {}
    return {"name": run.name, "outcome": run.outcome, **unknown}


def _brief(rows: Sequence[ResultRow]) -> str:
    if not rows:
        return UNKNOWN
    lost, resent, _ = (sum(each) for each in zip(*(row.events for row in rows), strict=True))
    unknown = sum(row.lost_frames is None for row in rows)
    text = f"{UNKNOWN if unknown == len(rows) else f'{lost:,}'} lost"
    if 0 < unknown < len(rows):
        text += f" (unknown for {unknown})"
    if resent and not lost:
        text += f", {resent:,} sent again"
    silences_ns = [row.longest_silence_ns for row in rows if row.longest_silence_ns is not None]
    if not silences_ns:
        return text
    return f"{text}, silent for {'at most ' * (len(rows) > 1)}{duration(max(silences_ns))}"


def _text(kind: str, change: float | None, old: float | None) -> str:
    if change is None or old is None:
        return UNKNOWN
    if change == 0:
        return SAME
    if kind == RATE:
        return f"{change / old:+.1%}".replace("%", " %") if old else UNKNOWN
    sign = "+" if change > 0 else "-"
    size = f"{abs(change):,.0f}" if kind == COUNT else duration(round(abs(change)))
    return f"{sign}{size}"
