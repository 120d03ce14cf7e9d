"""A mutant is invalid unless it changes the code, and its text occurs exactly once in the file."""

from functools import cache
from pathlib import Path

import pytest
import yaml

from windtunnel.harness.exam.mutant import MutantError, chosen, load_all, load_file
from windtunnel.harness.scenario.loader import load_scenario

SCENARIOS = Path(__file__).resolve().parents[4] / "scenarios"

ROW = {
    "name": "off-by-one",
    "about": "A limit is a limit.",
    "file": "driver/some/file.py",
    "find": "at < limit",
    "replace": "at <= limit",
    "side": "receiver",
    "scenarios": ["exam/loss"],
    "killed_by": ["delivered_once"],
}
TEXT = "def over(at, limit):\n    return at < limit\n"


def mutant(tmp_path, **changed):
    file = tmp_path / "one.yaml"
    file.write_text(yaml.safe_dump([{**ROW, **changed}]))
    return load_file(file)[0]


def test_it_replaces_the_text_that_it_finds(tmp_path):
    assert mutant(tmp_path).applied(TEXT) == TEXT.replace("<", "<=")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"find": "at > limit"}, "found it 0 times"),
        ({"find": "limit"}, "found it 2 times"),
        ({"replace": "at < (limit"}, "is not valid Python"),
        ({"replace": "at < limit"}, "has no effect"),
        ({"replace": "at < limit  # a comment"}, "has no effect"),
    ],
)
def test_an_invalid_edit_is_refused(tmp_path, changed, message):
    with pytest.raises(MutantError, match=message):
        mutant(tmp_path, **changed).applied(TEXT)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"file": "harness/verdict/judge.py"}, "file"),
        ({"side": "left"}, "side"),
        ({"scenarios": []}, "scenarios"),
        ({"find": ""}, "find"),
        ({"name": "Not A Name"}, "name"),
        ({"color": "red"}, "color"),
    ],
)
def test_an_invalid_row_is_refused(tmp_path, changed, message):
    with pytest.raises(MutantError, match=f"mutant 1: {message}"):
        mutant(tmp_path, **changed)


@pytest.mark.parametrize("text", ["{a: 1}", "a: [", ""])
def test_a_file_that_is_not_a_list_is_refused(tmp_path, text):
    file = tmp_path / "one.yaml"
    file.write_text(text)
    with pytest.raises(MutantError, match=r"one\.yaml"):
        load_file(file)


def test_a_name_occurs_once(tmp_path):
    for name in ("one.yaml", "two.yaml"):
        (tmp_path / name).write_text(yaml.safe_dump([ROW]))
    with pytest.raises(MutantError, match="off-by-one"):
        load_all(tmp_path)


def test_patterns_choose_by_name(tmp_path):
    rows = [{**ROW, "name": name} for name in ("nak-late", "nak-long", "hwm-falls")]
    (tmp_path / "one.yaml").write_text(yaml.safe_dump(rows))
    all_three = load_all(tmp_path)
    assert chosen(all_three, []) == all_three
    assert [each.name for each in chosen(all_three, ["nak-*"])] == ["nak-late", "nak-long"]
    with pytest.raises(MutantError, match="'sm-\\*'"):
        chosen(all_three, ["nak-*", "sm-*"])


def test_an_unreadable_file_is_refused(tmp_path):
    with pytest.raises(MutantError, match="cannot be read"):
        load_file(Path(tmp_path / "absent.yaml"))


fidelities = cache(lambda name: load_scenario(SCENARIOS / f"{name}.yaml").fidelity)
"""Loads a scenario once for the many mutants that share it."""


@pytest.mark.parametrize("found", load_all(), ids=lambda each: each.name)
def test_each_mutant_has_a_fidelity_that_its_scenarios_support(found):
    for name in found.scenarios:
        assert found.fidelity in fidelities(name), name
