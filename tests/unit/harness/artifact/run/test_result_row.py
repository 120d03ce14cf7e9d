"""Figures of a result row as text: known ones with their units, unknown ones as `-`."""

from dataclasses import replace

import pytest

from windtunnel.harness.artifact.run.observed import Observations, ReaderObservations
from windtunnel.harness.artifact.run.result_row import (
    FOUND_MAX,
    ResultRow,
    duration,
    known_cells,
    rest_text,
    shown_first,
)
from windtunnel.harness.cli.render.results_table import (
    SENTENCES_MAX,
    observation_lines,
    result_lines,
)


def test_an_unknown_figure_is_a_dash_and_absent_from_the_document():
    row = ResultRow("ticks", "a", "b")
    unknown = {"-", "- / -", "- / - / -"}
    assert {text for _, text in row.cells()} <= unknown
    assert row.as_document() == {"traffic": "ticks", "from_host": "a", "to_host": "b"}


def test_ratios_need_something_to_divide_by():
    row = ResultRow("t", "a", "b", lost_bytes=0, lost_frames=0, resent_bytes=64, resent_frames=1)
    texts = dict(row.cells())
    assert texts["lost"] == "0 frames, 0 B"
    assert texts["sent again"] == "1 frame, 64 B"
    row = ResultRow("t", "a", "b", lost_bytes=32, resent_bytes=64, resent_frames=2, naks=3, gaps=2)
    texts = dict(row.cells())
    assert texts["sent again"] == "2 frames, 64 B (x2.00)"
    assert texts["NAKs"] == "3 for 2 gaps (1.5 each)"


def test_recovery_without_losses_is_called_unneeded():
    row = ResultRow("t", "a", "b", lost_frames=0, lost_bytes=0, gaps=0, naks=1200)
    assert dict(row.cells())["NAKs"] == "1,200, none for a lost frame"
    row = replace(row, resent_frames=2, resent_bytes=64, unneeded_frames=2)
    assert dict(row.cells())["sent again"] == "2 frames, 64 B (none needed)"
    assert dict(replace(row, naks=0).cells())["NAKs"] == "0 for 0 gaps"
    unreliable = replace(row, naks=0, gaps=17, requested_gaps=0)
    assert dict(unreliable.cells())["NAKs"] == "0 for 17 gaps"


@pytest.mark.parametrize(
    ("value_ns", "text"),
    [
        (None, "-"),
        (0, "0 ms"),
        (12_345_678, "12.3 ms"),
        (999_499_999, "999 ms"),
        (999_500_000, "1.00 s"),
        (61_234_000_000, "61.23 s"),
    ],
)
def test_durations_have_about_three_digits(value_ns, text):
    assert duration(value_ns) == text


def test_columns_that_do_not_fit_follow_in_another_table():
    figures = {"reached_bytes_per_s": 2e6, "longest_silence_ns": 10**9, "finished_ns": 10**10}
    rows = [ResultRow("ticks", "a", f"reader-{index}", **figures) for index in range(4)]
    lines = list(result_lines(rows, 80))
    assert max(map(len, lines)) <= 80
    for row in rows:
        assert sum(f"a to {row.to_host}" in line for line in lines) > 0
    assert sum("goodput" in line for line in lines) + sum("finished" in line for line in lines) >= 2


def test_a_figure_that_no_row_has_is_left_out():
    rows = [
        ResultRow("ticks", "a", "b", naks=3),
        ResultRow("ticks", "a", "c", naks=0, repair_p50_ns=10**6),
    ]
    assert known_cells(rows) == (
        ["repair p50/p99", "NAKs"], [["- / -", "3"], ["1 ms / -", "0"]]
    )  # fmt: skip
    assert known_cells([ResultRow("ticks", "a", "b")]) == ([], [[]])
    assert list(result_lines([ResultRow("ticks", "a", "b")], 80)) == []


def test_a_stream_is_a_column_and_many_subscribers_are_lines():
    figures = {"reached_bytes_per_s": 2e6, "naks": 52, "gaps": 50, "stalled_ns": {"repair": 10**9}}
    for count, first in ((1, "ticks: a to b0"), (7, "goodput")):
        rows = [ResultRow("ticks", "a", f"b{index}", **figures) for index in range(count)]
        (heading, *lines) = result_lines(rows, 80)
        assert heading.strip().startswith(first)
        # A screen has 24 lines. By columns, seven subscribers would take 36 or more.
        assert len(lines) < 24
        assert max(map(len, (heading, *lines))) <= 80


def found(lost: int, name: int, **figures) -> ResultRow:
    row = ResultRow(
        f"stream-{name}", "a", "b", found_stream=name, lost_frames=lost, lost_bytes=lost
    )
    return replace(row, resent_frames=lost, naks=lost, **figures)


def test_of_many_found_streams_those_with_events_are_shown():
    named = ResultRow("orders", "a", "b", lost_frames=0)
    rows = [found(0, name, longest_silence_ns=name * 10**9) for name in range(1, FOUND_MAX)]
    few = [named, *rows, found(3, 90)]
    assert shown_first(few) == (few, [])
    many = [*few, found(2, 91)]
    shown, others = shown_first(many)
    assert shown == [named, found(3, 90), found(2, 91)]
    assert others == rows
    assert rest_text(others) == (
        "7 more streams: 0 frames lost, 0 sent again, 0 NAKs; longest silence 7.00 s (stream-7)"
    )
    *_, last = result_lines(many, 80)
    assert last == f"    {rest_text(others)}: see --json"


def test_of_many_found_streams_without_events_none_is_called_more():
    rows = [found(0, name) for name in range(FOUND_MAX + 1)]
    assert list(result_lines(rows, 80)) == [
        "    9 streams: 0 frames lost, 0 sent again, 0 NAKs: see --json"
    ]


def test_of_found_streams_with_events_those_that_lost_most_are_shown():
    rows = [found(lost, lost) for lost in range(1, FOUND_MAX + 4)]
    shown, others = shown_first(rows)
    assert shown == rows[3:]
    unknown = replace(rows[0], lost_frames=None)
    assert rest_text(others) == "3 more streams: 6 frames lost, 6 sent again, 6 NAKs"
    text = rest_text([unknown, *others[1:]])
    assert text == "3 more streams: 5 frames lost (unknown for 1), 6 sent again, 6 NAKs"


def test_streams_that_the_scenario_names_are_all_shown():
    rows = [ResultRow(f"s{number}", "a", "b", lost_frames=0) for number in range(2 * FOUND_MAX)]
    assert shown_first(rows) == (rows, [])


def test_of_observed_streams_it_is_unknown_what_the_applications_saw():
    (heading, _) = observation_lines(Observations(sentences=["s1 at b: no new data"]), 80)
    assert heading.strip() == "what the hosts saw"


def test_sentences_are_wrapped_and_the_terminal_shows_only_the_first_ones():
    sentences = [f"ticks at b{index}: {'no delivery ' * 10}" for index in range(SENTENCES_MAX + 2)]
    observed = Observations(
        sentences=sentences[-1:], readers=[ReaderObservations("t", "b", sentences[:-1])]
    )
    (heading, *lines) = observation_lines(observed, 80)
    assert heading.strip() == "what the application saw"
    assert max(map(len, lines)) <= 80
    assert [line.split(":")[0] for line in lines if line.startswith("    - ")] == [
        *(f"    - ticks at b{index}" for index in range(SENTENCES_MAX)),
        "    - 2 more",
    ]
    assert list(observation_lines(Observations(), 80)) == []


def test_unprintable_characters_of_a_sentence_are_escaped():
    lines = observation_lines(Observations(sentences=["t\x1b[31m: 1 stall"]), 80)
    assert not any("\x1b" in line for line in lines)


def test_unprintable_characters_of_a_name_are_escaped():
    (heading, *_) = result_lines([ResultRow("t\x1b[31m", "a", "b", naks=1)], 80)
    assert "\x1b" not in heading
