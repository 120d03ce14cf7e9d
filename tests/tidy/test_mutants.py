"""Every mutant of the exam is one edit of the current driver, and names scenarios that exist."""

import subprocess
import sys
from pathlib import Path

import pytest

from windtunnel.harness.exam.mutant import load_all
from windtunnel.harness.verdict.checks.subject import NAME as SUBJECT_LIVED
from windtunnel.harness.verdict.registry import CHECKS

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = load_all()
WANTED = 40


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.name)
def test_a_mutant_is_one_edit_of_the_current_driver(mutant):
    before = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert before.count(mutant.find) == 1
    after = mutant.applied(before)
    assert after != before
    compile(after, mutant.file, "exec")


def test_mutants_use_no_name_that_their_module_lacks(tmp_path):
    for each in MUTANTS:
        text = (ROOT / each.file).read_text(encoding="utf-8")
        (tmp_path / f"{each.name}.py").write_text(each.applied(text), encoding="utf-8")
    command = [Path(sys.executable).with_name("ruff"), "check", "--isolated", "--no-cache"]
    command += ["--select", "F821", "--output-format", "concise", tmp_path]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.name)
def test_a_mutant_names_scenarios_and_checks_that_exist(mutant):
    missing = [
        name for name in mutant.scenarios if not (ROOT / "scenarios" / f"{name}.yaml").is_file()
    ]
    assert not missing
    assert set(mutant.killed_by) <= {SUBJECT_LIVED, *CHECKS}


def test_there_are_enough_mutants_and_no_two_are_equal():
    edits = {(each.file, each.find, each.replace) for each in MUTANTS}
    assert len(edits) == len(MUTANTS) >= WANTED


def test_each_mutant_is_either_expected_to_be_killed_or_explained():
    unclear = [each.name for each in MUTANTS if not each.killed_by and not each.survives_because]
    both = [each.name for each in MUTANTS if each.killed_by and each.survives_because]
    assert not unclear
    assert not both
