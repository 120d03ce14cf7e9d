"""Each class of faults has a scenario that belongs to it, and a defect that fails the scenario."""

from dataclasses import replace

import pytest

from tests.scenarios.fault_classes import is_shown, rows
from tests.scenarios.test_scenario_files import FOLDER, case_of
from windtunnel.harness.exam.mutant import load_all
from windtunnel.harness.orchestrate.subjects.subject import SABOTAGES

ROWS = rows()
CLASSES = {"loss": 14, "order": 5, "copies": 4, "damage": 4, "forgery": 4, "path": 4, "host": 2}


def test_each_class_occurs_once():
    names = [each.name for each in ROWS]
    assert len(set(names)) == len(names) == 37
    kinds = [name.partition(":")[0] for name in names]
    assert {kind: kinds.count(kind) for kind in CLASSES} == CLASSES


@pytest.mark.parametrize("row", ROWS, ids=lambda each: each.name)
def test_its_scenario_belongs_to_the_class(row):
    assert is_shown(row, case_of(FOLDER / f"{row.scenario}.yaml"))


@pytest.fixture(scope="module")
def defects():
    """The names of all defects that can be planted."""
    return {*SABOTAGES, *(each.name for each in load_all())}


@pytest.mark.parametrize("row", ROWS, ids=lambda each: each.name)
def test_its_defect_can_be_planted(row, defects):
    assert row.defect in defects


def test_a_scenario_of_another_class_is_detected():
    case = case_of(FOLDER / "matrix" / "clean.yaml")
    assert not any(is_shown(each, case) for each in ROWS)
    loss = case_of(FOLDER / "loss" / "tail-frame.yaml")
    row = next(each for each in ROWS if each.scenario == "loss/tail-frame")
    assert is_shown(row, loss)
    assert not is_shown(replace(row, shows={**row.shows, "type": "SM"}), loss)
    many = next(each for each in ROWS if each.scenario == "many/multicast-one-lossy")
    assert not is_shown(many, loss)
    assert not is_shown(many, case_of(FOLDER / "many" / "partition-and-heal.yaml"))


def test_the_table_for_users_is_the_same():
    lines = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    output = {line.strip("| ").split(" | ")[0]: line for line in lines if line.startswith("| ")}
    for row in ROWS:
        assert f"`{row.scenario}`" in output.get(row.name, ""), row.name
