"""JUnit XML and Markdown documents have the outcome of each run of a matrix or suite."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Tree

import pytest

from tests.unit.reports.synthetic_matrix import make_matrix
from windtunnel.harness.artifact.run.suite import Suite
from windtunnel.reports.junit import junit_xml
from windtunnel.reports.markdown import ROWS_MAX, summary
from windtunnel.reports.outcomes import of_matrix, of_suite

FOLDER = Path("runs/matrix-made")
CELL = ("matrix/loss", "pyaeron", "ours")


def written(*outcomes: str) -> Tree.Element:
    given = {CELL: outcomes} if outcomes else {}
    return Tree.fromstring(junit_xml(of_matrix(FOLDER, make_matrix(given))))


def cases(root: Tree.Element) -> dict[str, Tree.Element]:
    return {f"{each.get('classname')}: {each.get('name')}": each for each in root.iter("testcase")}


def test_each_scenario_is_a_test_suite_and_each_run_a_test_case():
    root = written()
    assert [each.get("name") for each in root] == ["matrix/clean", "matrix/loss"]
    assert [each.get("tests") for each in (root, *root)] == ["12", "6", "6"]
    assert "matrix.loss: pyaeron → ours, seed 8" in cases(root)
    assert {each.get("time") for each in root.iter("testcase")} == {"2.000"}


@pytest.mark.parametrize(
    ("outcome", "element", "count"),
    [
        ("FAIL", "failure", "failures"),
        ("HARNESS", "error", "errors"),
        ("INCONCLUSIVE", "error", "errors"),
        ("CANCELLED", "error", "errors"),
        ("UNSUPPORTED", "skipped", "skipped"),
    ],
)
def test_an_outcome_other_than_pass_has_its_reason(outcome, element, count):
    root = written("PASS", outcome)
    found = cases(root)["matrix.loss: pyaeron → ours, seed 8"].find(element)
    assert found is not None
    assert found.get("type") == outcome
    assert found.get("message", "").startswith(f"because | of <{outcome}>")
    before = written()
    assert int(root.get(count, "")) == int(before.get(count, "")) + 1
    good = cases(root)["matrix.loss: pyaeron → ours, seed 7"]
    assert [child.tag for child in good] == ["system-out"]
    assert good[0].text == "evidence: runs/matrix-made/pyaeron-to-ours/matrix-loss-s7"


def test_control_characters_of_a_reason_do_not_break_the_xml():
    assert b"\x1b" not in junit_xml(of_matrix(FOLDER, make_matrix({CELL: ("FAIL",)})))


def test_a_summary_has_a_row_per_scenario_and_a_column_per_pair():
    lines = summary(of_matrix(FOLDER, make_matrix({CELL: ("PASS", "FAIL")}))).splitlines()
    assert lines[0].endswith("Windtunnel matrix: FAIL")
    assert "12 runs: 7 PASS, 1 FAIL, 4 UNSUPPORTED" in lines[2]
    header = next(line for line in lines if line.startswith("| scenario"))
    row = next(line for line in lines if line.startswith("| matrix/loss"))
    column = header.split(" | ").index("pyaeron → ours")
    assert row.split(" | ")[column].endswith("FAIL 1/2")
    assert row.count("UNSUPPORTED") == 2


def test_a_summary_lists_failures_and_each_unsupported_reason_once():
    text = summary(of_matrix(FOLDER, make_matrix({CELL: ("FAIL",)})))
    assert "**FAIL** matrix/loss, pyaeron → ours, seed 7: because \\| of \\<FAIL>" in text
    assert "(`pyaeron-to-ours/matrix-loss-s7`)" in text
    assert text.count("**UNSUPPORTED** 4 of the runs: because") == 1


def test_a_summary_contains_no_control_characters():
    made = of_matrix(FOLDER, make_matrix({CELL: ("FAIL",)}))
    hostile = "\x1b]0;title\x07\u202e"
    rows = [
        replace(row, scenario=hostile, publisher=hostile, reason=hostile, folder=hostile)
        for row in made.rows
    ]
    text = summary(replace(made, rows=tuple(rows)))
    assert text.replace("\n", "").isprintable()
    assert "\\\\x1b]0;title\\\\x07\\\\u202e" in text


def test_a_summary_lists_a_limited_number_of_failures():
    text = summary(of_matrix(FOLDER, make_matrix({CELL: ("FAIL",) * (ROWS_MAX + 3)})))
    assert text.count("**FAIL**") == ROWS_MAX
    assert "- and 3 more" in text


def test_a_suite_has_the_same_documents():
    rows = make_matrix({CELL: ("FAIL",)}).cells[6].runs
    suite = Suite("s", "netns", [], 1, 2, 1, rows, publisher="pyaeron", subscriber="ours")
    outcomes = of_suite(Path("runs/s"), suite)
    assert outcomes.outcome == "FAIL"
    (case,) = Tree.fromstring(junit_xml(outcomes)).iter("testcase")
    assert case.get("name") == "pyaeron → ours, seed 7"
    assert "runs/s/matrix-loss-s7" in (case.findtext("system-out") or "")
    assert "| matrix/loss | " in summary(outcomes)


def test_a_suite_without_runs_is_inconclusive():
    suite = Suite("s", "netns", [], 1, 2, 130, [])
    assert summary(of_suite(Path("s"), suite)).startswith("## ❔ Windtunnel: INCONCLUSIVE")
