"""The section of a sweep on a report page draws figures over the swept value."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from windtunnel.harness.artifact.run.result_row import ResultRow
from windtunnel.harness.artifact.run.suite import SuiteRun
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.reports.evidence import RunDocuments
from windtunnel.reports.sweep.drawing import LINES_MAX
from windtunnel.reports.sweep.lines import FIGURES, lines_of, swept_names
from windtunnel.reports.sweep.section import sweeps

STREAM = ("feed", "a", "b")


def run(goodput: float | None, seed: int = 1, sweep: str = "mine", **settings: str) -> RunDocuments:
    row = ResultRow(*STREAM, reached_bytes_per_s=goodput, repair_p99_ns=None)
    name = f"{sweep}/x"
    summary = SuiteRun("x", name, seed, "PASS", "good", 0, 1, sweep=sweep, settings=settings)
    verdict: dict[str, Any] = {"outcome": "PASS", "results": [row.as_document()]}
    return RunDocuments(RunDir(Path("x")), verdict=verdict, summary=summary)


RUNS = [
    run(9e6, loss="1%", delay="1ms", **{"seeds.count": "2"}),
    run(7e6, seed=2, loss="1%", delay="1ms", **{"seeds.count": "2"}),
    run(4e6, loss="1%", delay="40ms", **{"seeds.count": "2"}),
    run(2e6, loss="5%", delay="1ms", **{"seeds.count": "2"}),
    run(None, loss="5%", delay="40ms", **{"seeds.count": "2"}),
]


def test_the_first_value_is_the_axis_and_the_others_are_lines() -> None:
    assert swept_names(RUNS) == ["loss", "delay"]
    axis, lines = lines_of(RUNS, STREAM, ["loss", "delay"], FIGURES[0].value)
    assert axis == ["1%", "5%"]
    assert [(each.name, each.values) for each in lines] == [
        ("delay 1ms", (8e6, 2e6)),
        ("delay 40ms", (4e6, None)),
    ]


def test_a_figure_that_no_run_has_is_not_drawn() -> None:
    (section,) = sweeps([(each, f"run-{index}") for index, each in enumerate(RUNS)])
    assert "<h2>Sweep of mine</h2>" in section
    assert "goodput (MB/s) over loss" in section
    assert "repair time, 99 % (ms)" not in section
    assert section.count("<tr>") == 1 + len(RUNS)
    assert '<a href="#run-3">' in section


def test_small_rates_have_a_smaller_unit() -> None:
    runs = [run(4250.0, loss="1%"), run(900.0, loss="5%")]
    (section,) = sweeps([(each, "x") for each in runs])
    assert "goodput (kB/s) over loss" in section
    assert "<title>1%: 4.25</title>" in section
    assert "4.25 kB/s" in section
    assert "900 B/s" in section


def test_points_are_where_their_values_are() -> None:
    (section,) = sweeps([(each, "x") for each in RUNS])
    svg = re.search(r"<svg.*?</svg>", section, re.DOTALL)
    assert svg is not None
    drawing = ElementTree.fromstring(svg[0])
    points = {
        str(each.findtext("title")): (float(each.get("cx", 0)), float(each.get("cy", 0)))
        for each in drawing.iter("circle")
    }
    assert set(points) == {"1%, delay 1ms: 8", "5%, delay 1ms: 2", "1%, delay 40ms: 4"}
    eight, four = points["1%, delay 1ms: 8"], points["1%, delay 40ms: 4"]
    two = points["5%, delay 1ms: 2"]
    assert eight[0] == four[0] < two[0]
    # Equal differences of the figures are equal distances.
    assert four[1] - eight[1] == pytest.approx(2 * (two[1] - four[1]), abs=0.2)
    assert len(list(drawing.iter("polyline"))) == 1


def test_each_sweep_has_a_section_and_other_runs_have_none() -> None:
    runs = [*RUNS, run(1e6, sweep="other", loss="1%"), run(1e6, sweep="")]
    assert len(sweeps([(each, "x") for each in runs])) == 2


def test_one_variant_has_a_table_only() -> None:
    (section,) = sweeps([(run(1e6, loss="<b>"), "x")])
    assert "<svg" not in section
    assert "1.00 MB/s" in section


def test_lines_beyond_the_limit_are_reported_as_left_out() -> None:
    count = LINES_MAX + 3
    runs = [run(1e6 * n, loss=loss, rate=str(n)) for n in range(1, count + 1) for loss in "12"]
    (section,) = sweeps([(each, "x") for each in runs])
    assert f"The first {LINES_MAX} of {count} lines." in section
    assert section.count("<polyline") == LINES_MAX


def test_values_are_escaped() -> None:
    runs = [run(1e6, loss="<b>", rate="1"), run(2e6, loss="x", rate="<i>")]
    (section,) = sweeps([(each, "x") for each in runs])
    assert "<b>" not in section
    assert "<i>" not in section
