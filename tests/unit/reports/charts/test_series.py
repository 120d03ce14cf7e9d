"""The series of a run, and the charts that are drawn from them."""

from dataclasses import replace

import numpy as np

from windtunnel.reports.charts.chart_document import (
    MARKS_PER_KIND_MAX,
    POINTS_PER_LINE_MAX,
    chart_document,
    is_reduced,
    limits_of,
)
from windtunnel.reports.charts.counter_lines import Line
from windtunnel.reports.charts.marks import Marks
from windtunnel.reports.charts.series import RunSeries, StreamSeries


def column(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.int64)


def test_a_chart_has_a_limited_number_of_points() -> None:
    long = Line("snd-pos", column(200_000) * 1_000_000, column(200_000))
    many = Marks("dropped", *(column(50_000) for _ in range(4)))
    stream = StreamSeries("t", 1, 65536, 0, True, [long], [], [many])
    drawn = chart_document(RunSeries([stream]), [])["streams"][0]
    assert len(drawn["lines"][0]["t"]) <= POINTS_PER_LINE_MAX + 1
    assert len(drawn["marks"][0]["t"]) <= MARKS_PER_KIND_MAX
    assert drawn["marks"][0]["count"] == 50_000


def test_observed_streams_without_events_have_the_last_charts() -> None:
    def stream(name: str, kind: str = "", observed: bool = True) -> StreamSeries:
        marks = [Marks(kind, *(column(1) for _ in range(4)))] if kind else []
        return StreamSeries(name, 1, 65536, 0, True, marks=marks, observed=observed)

    streams = [
        stream("quiet"),
        stream("named", observed=False),
        stream("late", "delayed"),
        stream("lost", "dropped"),
        stream("asked", "NAK"),
    ]
    document = chart_document(RunSeries(streams), [])
    names = [each["traffic"] for each in document["streams"]]
    assert names == ["named", "lost", "asked", "quiet", "late"]


def test_the_charts_of_a_page_have_a_limited_number_of_points(monkeypatch) -> None:
    monkeypatch.setattr("windtunnel.reports.charts.chart_document.POINTS_MAX", 10_000)
    lines = [Line("snd-pos", column(count), column(count)) for count in (100, 9_000, 9_000)]
    runs = [
        RunSeries([StreamSeries(name, 1, 65536, 0, True, lines, [], [])]) for name in ("t", "u")
    ]
    limits = limits_of(runs)
    drawn = [
        len(line["t"]) - 1
        for run in runs
        for line in chart_document(run, [], limits=limits)["streams"][0]["lines"]
    ]
    assert drawn[0] == 100
    assert 5_000 < sum(drawn) <= 10_000
    assert is_reduced(runs[0], limits)
    assert not is_reduced(RunSeries([]), limits)
    assert limits_of(runs[:1]).points > limits.points


def test_chart_times_are_milliseconds_from_the_first_event() -> None:
    line = Line("snd-pos", np.array([5_000_000, 7_000_000]), np.array([0, 32]))
    mark = Marks("dropped", *(np.array([9_500_000]) for _ in range(4)))
    stream = StreamSeries("t", 1, 65536, 0, True, [line], [], [mark])
    document = chart_document(RunSeries([stream]), [])
    drawn = document["streams"][0]
    assert document["duration_ms"] == 4.5
    assert drawn["lines"][0]["t"].tolist() == [0.0, 2.0, 4.5]
    assert drawn["lines"][0]["v"].tolist() == [0, 32, 32]
    assert drawn["marks"][0]["t"].tolist() == [4.5]


def test_gap_fills_are_not_delivered_bytes() -> None:
    times, nothing = np.array([1, 2]), np.zeros(2, dtype=np.int64)
    consumed = Line("sub-pos", times, np.array([0, 4_096]))
    fills = Marks("gap fill", times, np.array([64, 1_024]), np.array([128, 64]), nothing)
    stream = StreamSeries("t", 1001, 65_536, 0, False, lines=[consumed], marks=[fills])
    assert stream.delivered_bytes == 4_096 - 192


def test_a_retransmit_to_a_group_is_counted_once() -> None:
    """Each receiver's series has the retransmit; frames to other destinations have other times."""
    times, nothing = np.array([1, 2]), np.full(2, 2, dtype=np.int64)
    retransmits = Marks("retransmit", times, np.array([64, 128]), np.array([64, 64]), nothing)
    other = Marks("retransmit", times + 5, np.array([64, 128]), np.array([64, 64]), nothing)
    series = RunSeries(
        [
            StreamSeries(f"t at {name}", 1001, 65_536, 0, True, marks=[marks])
            for name, marks in (("a", retransmits), ("b", retransmits), ("c", other))
        ]
    )
    assert series.count("retransmit") == 4
    naks = [replace(each, marks=[replace(retransmits, kind="NAK")]) for each in series.streams]
    assert RunSeries(naks).count("NAK") == 6
