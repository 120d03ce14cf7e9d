"""Figures of a result row as text: known ones with their units, unknown ones as `-`."""

import pytest

from windtunnel.harness.artifact.run.result_row import ResultRow, duration
from windtunnel.harness.cli.render.results_table import result_lines


def test_an_unknown_figure_is_a_dash_and_absent_from_the_document():
    row = ResultRow("ticks", "a", "b")
    unknown = {"-", "- / -", "- / - / -"}
    assert {text for _, text in row.cells()} <= unknown
    assert row.as_document() == {"traffic": "ticks", "from_host": "a", "to_host": "b"}


def test_ratios_need_something_to_divide_by():
    row = ResultRow("t", "a", "b", lost_bytes=0, lost_frames=0, resent_bytes=64, resent_frames=1)
    texts = dict(row.cells())
    assert texts["lost"] == "0 frames, 0 B"
    assert texts["sent again"] == "1 frames, 64 B"
    row = ResultRow("t", "a", "b", lost_bytes=32, resent_bytes=64, resent_frames=2, naks=3, gaps=2)
    texts = dict(row.cells())
    assert texts["sent again"] == "2 frames, 64 B (x2.00)"
    assert texts["NAKs"] == "3 for 2 gaps (1.5 each)"


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
    rows = [ResultRow("ticks", "a", f"reader-{index}") for index in range(5)]
    lines = list(result_lines(rows, 80))
    assert max(map(len, lines)) <= 80
    for row in rows:
        assert sum(f"a to {row.to_host}" in line for line in lines) == 1
    assert sum("goodput" in line for line in lines) > 1


def test_unprintable_characters_of_a_name_are_escaped():
    (heading, *_) = result_lines([ResultRow("t\x1b[31m", "a", "b")], 80)
    assert "\x1b" not in heading
