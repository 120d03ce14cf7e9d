"""The series of a run equal the timeline of the synthetic run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.unit.reports.synthetic_suite import (
    SESSION_ID,
    RunParameters,
    announce,
    make_case,
    make_run,
    timeline,
)
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.scenario.resolved.case import Case, HostCase, LinkCase
from windtunnel.reports.charts.chart_document import chart_document
from windtunnel.reports.charts.series_reader import read_series

MADE = RunParameters(frame_count=800, loss=0.05)
LINES = ["pub-lmt", "snd-lmt", "snd-pos", "rcv-hwm", "rcv-pos", "sub-pos"]


def made(folder: Path, given: RunParameters = MADE) -> RunDir:
    run = RunDir(folder)
    make_run(run, "loss/reliable-2pct", given, "PASS")
    return run


def lost_count(given: RunParameters, ordinal: int) -> int:
    case = make_case("x", given)
    line = timeline(
        replace(given, seed=given.seed * 10 + ordinal), case.traffic[ordinal].term_length, 0
    )
    return int(line.lost.sum())


def test_reads_all_lines_and_every_event_of_a_reliable_run(tmp_path: Path) -> None:
    series = read_series(made(tmp_path))
    assert series.notes == []
    assert [stream.stream_id for stream in series.streams] == [1001, 1002]
    for ordinal, stream in enumerate(series.streams):
        assert [line.name for line in stream.lines] == LINES
        assert [line.name for line in stream.distances] == [
            "window left",
            "unread",
            "in flight",
            "gap",
        ]
        lost = lost_count(MADE, ordinal)
        assert lost > 10
        assert [stream.count(kind) for kind in ("dropped", "NAK", "retransmit")] == [lost] * 3
        assert stream.count("gap fill") == 0
        assert stream.count("feedback lost") == 3


def test_an_unreliable_run_fills_gaps_and_sends_no_naks(tmp_path: Path) -> None:
    series = read_series(made(tmp_path, replace(MADE, reliable=False)))
    stream = series.streams[0]
    assert stream.count("gap fill") == lost_count(MADE, 0)
    assert stream.count("NAK") == stream.count("retransmit") == 0


def test_repairs_have_the_positions_of_the_losses(tmp_path: Path) -> None:
    stream = read_series(made(tmp_path)).streams[1]
    at = {each.kind: each.position for each in stream.marks}
    assert sorted(at["dropped"]) == sorted(at["NAK"]) == sorted(at["retransmit"])
    assert int(at["dropped"].max()) > stream.term_length // 2
    assert stream.delivered_bytes == int(stream.lines[2].value[-1])


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("decisions", "the decision log is missing"),
        ("capture", "the capture of a is missing"),
        ("frames", "the frame log of subscriber term-64k is missing"),
    ],
)
def test_a_missing_file_is_noted_and_the_rest_is_drawn(
    name: str, note: str, tmp_path: Path
) -> None:
    run = made(tmp_path)
    path = {
        "decisions": run.decisions,
        "capture": run.capture("a"),
        "frames": run.host("b").subscriber("term-64k").frames,
    }[name]
    path.unlink()
    series = read_series(run)
    assert series.notes == [note]
    assert [line.name for line in series.streams[0].lines] == LINES


def test_damaged_files_are_noted(tmp_path: Path) -> None:
    run = made(tmp_path)
    run.capture("b").write_bytes(b"no capture at all, but long enough for a header")
    run.host("a").counters.write_text("{")
    notes = "\n".join(read_series(run).notes)
    assert "the capture of b cannot be read" in notes
    assert "the counters of a for stream 1001 cannot be read" in notes


def test_an_empty_folder_is_an_empty_series(tmp_path: Path) -> None:
    series = read_series(RunDir(tmp_path))
    assert series.streams == []
    assert len(series.notes) == 1
    assert series.start_ns == series.end_ns == 0


def test_the_active_time_excludes_idle_time(tmp_path: Path) -> None:
    series = read_series(made(tmp_path))
    begin, end = series.active_ns
    assert series.start_ns < begin < end <= series.end_ns
    document = chart_document(series, [])
    assert document["is_delivered"] is True
    assert 0 < document["active_ms"][0] < document["active_ms"][1] <= document["duration_ms"]


def test_a_stream_that_was_not_read_to_its_end_is_not_delivered(tmp_path: Path) -> None:
    series = read_series(made(tmp_path))
    sub_pos = series.streams[1].lines[-1]
    assert sub_pos.name == "sub-pos"
    sub_pos.value[-1] -= 32
    assert chart_document(series, [])["is_delivered"] is False


def test_each_reader_of_a_stream_has_a_chart(tmp_path: Path) -> None:
    run = made(tmp_path)
    case = Case.read(run.case)
    far = HostCase(name="c", address="10.64.0.35")
    links = tuple(LinkCase(between=("a", each)) for each in ("b", "c"))
    first = case.traffic[0].model_copy(update={"to_hosts": ("b", "c")})
    update = {"hosts": (*case.hosts, far), "links": links, "traffic": (first, *case.traffic[1:])}
    single = read_series(run).streams[0]
    case.model_copy(update=update).write(run.case)
    series = read_series(run)
    names = [stream.traffic_id for stream in series.streams]
    assert names == [f"{first.id} at b", f"{first.id} at c", case.traffic[1].id]
    assert series.streams[0].count("dropped") == single.count("dropped") > 0
    assert series.streams[1].count("dropped") == 0
    assert "the capture of c is missing" in series.notes


@pytest.mark.parametrize("all_streams", [False, True])
def test_observed_streams_are_drawn_like_those_of_the_traffic(
    all_streams: bool, tmp_path: Path
) -> None:
    run = made(tmp_path)
    case = Case.read(run.case)
    planned = read_series(run).streams
    announce(run, case)
    for each in case.traffic:
        run.host("b").subscriber(each.id).frames.unlink()
    unknown = {"observed": True, "ordinal": 0, "initial_term_id": None, "term_length": 1 << 20}
    named = tuple(each.model_copy(update=unknown) for each in case.traffic)
    observed = {"observes_all": True} if all_streams else {"observed": named}
    case.model_copy(update={"traffic": (), **observed}).write(run.case)
    series = read_series(run)
    assert series.notes == []
    ids = ["stream-1001", "stream-1002"] if all_streams else [each.id for each in case.traffic]
    assert [each.traffic_id for each in series.streams] == ids
    for found, expected in zip(series.streams, planned, strict=True):
        assert found.term_length == expected.term_length
        assert found.initial_term_id == expected.initial_term_id
        assert [each.name for each in found.lines] == LINES
        for line, other in zip(found.lines, expected.lines, strict=True):
            assert np.array_equal(line.value, other.value)
        for kind in ("dropped", "NAK", "retransmit"):
            assert found.count(kind) == expected.count(kind) > 0
    # They are not counted as traffic, of which there is none.
    assert series.of_traffic.streams == []


def test_each_session_of_an_observed_stream_has_a_chart(tmp_path: Path) -> None:
    run = made(tmp_path)
    case = Case.read(run.case)
    other = SESSION_ID + 1
    announce(run, case)
    announce(run, case, other)
    first = case.traffic[0].model_copy(update={"observed": True})
    case.model_copy(update={"traffic": (), "observed": (first,)}).write(run.case)
    one, two = read_series(run).streams
    assert [one.traffic_id, two.traffic_id] == [
        f"{first.id} session {SESSION_ID}",
        f"{first.id} session {other}",
    ]
    assert one.lines
    assert two.lines == two.marks == []
