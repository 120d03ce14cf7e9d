"""Differences between runs, compared with a plain subtraction of each figure."""

import json
from dataclasses import fields, replace

import pytest

from windtunnel.harness.artifact.run.comparison import (
    MEASURES,
    ComparedRun,
    compared_streams,
    comparison_document,
    different_parameters,
    found_first,
)
from windtunnel.harness.artifact.run.result_row import FOUND_MAX, ResultRow
from windtunnel.harness.cli.render.results_table import comparison_lines

FIRST = ResultRow(
    "prices", "a", "b",
    published_messages=1000, delivered_messages=1000, delivered_bytes=1_000_000,
    asked_bytes_per_s=4e6, reached_bytes_per_s=4e6, reached_messages_per_s=4000.0,
    latency_p50_ns=20_000_000, latency_p99_ns=60_000_000, latency_max_ns=90_000_000,
    longest_silence_ns=80_000_000, finished_ns=2_500_000_000,
    lost_frames=10, lost_bytes=14080, resent_frames=10, resent_bytes=14080, gaps=9, naks=12,
    repair_p50_ns=40_000_000, repair_p99_ns=41_000_000, stalled_ns={"repair": 300_000_000},
)  # fmt: skip
SECOND = replace(
    FIRST,
    delivered_messages=990,
    reached_bytes_per_s=3e6,
    latency_p99_ns=1_060_000_000,
    naks=15,
    stalled_ns={"repair": 100_000_000, "window": 500_000_000},
)


def run(name, *rows):
    return ComparedRun(name, "PASS", rows)


def cells(*runs):
    (stream,) = compared_streams(runs)
    return dict(stream.cells())


def test_each_cell_has_the_difference_from_the_first_run():
    found = cells(run("one", FIRST), run("two", SECOND))
    assert found["goodput"] == ["4.00 of 4.00 MB/s", "3.00 of 4.00 MB/s (-25.0 %)"]
    assert found["delivered"] == ["1,000 of 1,000", "990 of 1,000 (-10)"]
    assert found["latency p50/p99/max"] == [
        "20 ms / 60 ms / 90 ms",
        "20 ms / 1.06 s / 90 ms (= / +1.00 s / =)",
    ]
    assert found["NAKs"] == ["12 for 9 gaps (1.3 each)", "15 for 9 gaps (1.7 each) (+3)"]
    assert found["stalled"] == ["repair 300 ms", "window 500 ms, repair 100 ms (+300 ms)"]
    assert found["lost"][1] == "10 frames, 14,080 B (=)"


def test_every_cell_of_a_row_is_compared():
    assert list(MEASURES) == [title for title, _ in FIRST.cells()]


@pytest.mark.parametrize("field", [each.name for each in fields(ResultRow)][3:])
def test_a_change_of_any_figure_is_in_the_document(field):
    value = getattr(FIRST, field)
    if value is None or isinstance(value, dict | list):
        return
    changed = replace(FIRST, **{field: value + 7})
    document = json.loads(json.dumps(comparison_document([run("x", FIRST), run("y", changed)])))
    (stream,) = document["streams"]
    none, found = stream["differences"]
    assert {name: change for name, change in found.items() if change} == {field: 7}
    assert set(none.values()) == {0}
    assert stream["results"][1][field] == value + 7


def test_runs_without_a_stream_or_a_figure_have_no_difference():
    other = ResultRow("orders", "a", "b", naks=3)
    streams = compared_streams([run("one", FIRST), run("two", other), run("three", FIRST, other)])
    assert [each.name for each in streams] == ["prices: a to b", "orders: a to b"]
    assert [row is None for row in streams[0].rows] == [False, True, False]
    assert dict(streams[0].cells())["NAKs"][1] == "-"
    # The first run does not have this stream, so there is nothing to compare with.
    assert dict(streams[1].cells())["NAKs"] == ["-", "3", "3"]
    assert dict(streams[1].cells())["goodput"] == ["-", "-", "-"]


def test_a_rate_of_zero_has_no_percentage():
    slow = replace(FIRST, reached_bytes_per_s=0.0)
    assert cells(run("one", slow), run("two", FIRST))["goodput"][1] == "4.00 of 4.00 MB/s"


def test_only_parameters_that_differ_between_known_runs_are_listed():
    runs = [
        replace(run("one", FIRST), parameters={"seed": "1", "scenario": "x", "budget": "3s"}),
        replace(run("two", FIRST), parameters={"seed": "2", "scenario": "x"}),
        run("unknown", FIRST),
    ]
    found = [(each.name, each.values) for each in different_parameters(runs)]
    assert found == [("seed", ("1", "2", None)), ("budget", ("3s", None, None))]
    document = comparison_document(runs)
    assert document["parameters"][0] == {"name": "seed", "values": ["1", "2", None]}
    assert document["parameters_left_out"] == 0


def test_the_number_of_parameters_in_the_document_is_bounded():
    many = {f"p{index}": "1" for index in range(300)}
    runs = [replace(run("one", FIRST), parameters=many), replace(run("two"), parameters={})]
    document = comparison_document(runs)
    assert (len(document["parameters"]), document["parameters_left_out"]) == (256, 44)


def found(name: str, stream: int, lost: int, silence_s: int, **figures) -> ResultRow:
    return ResultRow(
        name, "a", "b", found_stream=stream, lost_frames=lost, lost_bytes=64 * lost,
        longest_silence_ns=silence_s * 10**9, **figures,
    )  # fmt: skip


def test_the_sessions_of_a_found_stream_are_compared_together():
    first = run("one", found("stream-7 session 1", 7, 2, 3, reached_bytes_per_s=9.0, naks=2),
                found("stream-7 session 2", 7, 3, 1, reached_bytes_per_s=9.0))  # fmt: skip
    second = run("two", found("stream-7-a-b", 7, 1, 2))
    (stream,) = compared_streams([first, second])
    assert (stream.name, stream.is_found) == ("stream-7: a to b", True)
    assert stream.rows == (found("stream-7", 7, 5, 3), found("stream-7", 7, 1, 2))
    assert stream.brief_cells() == ["5 lost, silent for 3.00 s", "1 lost, silent for 2.00 s"]
    assert stream.differences()[1]["lost_frames"] == -4
    assert replace(stream, rows=(ResultRow("x", "a", "b"),)).brief_cells() == ["- lost"]


def test_of_found_streams_without_losses_those_with_retransmits_and_silences_come_first():
    rows = [found(f"stream-{number}", number, 0, number) for number in range(FOUND_MAX)]
    again = replace(found("stream-99", 99, 0, 1), resent_frames=1384)
    _, shown, others = found_first(compared_streams([run("one", *rows, again)]))
    assert shown[0].brief_cells() == ["0 lost, 1,384 sent again, silent for 1.00 s"]
    assert [each.worst[3] for each in shown[1:]] == [
        number * 10**9 for number in range(FOUND_MAX - 1, 0, -1)
    ]
    assert [each.worst[3] for each in others] == [0]


def test_of_many_found_streams_those_that_lost_most_are_shown():
    rows = [found(f"stream-{number}", number, number, 1) for number in range(FOUND_MAX + 2)]
    streams = compared_streams([run("one", FIRST, *rows)])
    named, shown, others = found_first(streams)
    assert [each.traffic for each in named] == ["prices"]
    assert [each.worst[0] for each in shown] == list(range(FOUND_MAX + 1, 1, -1))
    assert [each.worst[0] for each in others] == [1, 0]
    lines = list(comparison_lines([run("one", FIRST, *rows)], 200))
    assert "streams that the captures show" in lines
    assert [each for each in lines[-1].split("  ") if each] == [
        "2 more streams (see --json)", "1 lost, silent for at most 1.00 s"
    ]  # fmt: skip


def test_the_streams_that_are_not_shown_have_figures_for_each_run():
    rows = [found(f"stream-{number}", number, 5, 2) for number in range(FOUND_MAX)]
    others = [found("stream-98", 98, 3, 1), found("stream-99", 99, 1, 2)]
    unknown = replace(others[1], lost_frames=None, longest_silence_ns=None)
    runs = [
        run("one", *rows, *others), run("two", *rows, others[0], unknown), run("three", unknown),
        run("four", *rows),
    ]  # fmt: skip
    *_, last = comparison_lines(runs, 300)
    assert [each.strip() for each in last.split("  ") if each] == [
        "2 more streams (see --json)", "4 lost, silent for at most 2.00 s",
        "3 lost (unknown for 1), silent for at most 1.00 s", "- lost", "-",
    ]  # fmt: skip
