"""The judge reads the results of own checks, and never executes them."""

import json

import pytest

from tests.unit.harness.verdict.synthetic_run import make_run
from windtunnel.harness.artifact.run.own_checks import OwnCheck, OwnCheckFile, OwnChecks
from windtunnel.harness.scenario.applications.application_case import ApplicationCase
from windtunnel.harness.verdict.checks.own import NAME, own_checks
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import AtFault
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import judge


@pytest.fixture
def run(tmp_path):
    made = make_run(tmp_path / "run")
    made.case = made.case.model_copy(update={"checks": ("checks.py",)})
    made.write()
    return made


def store(run, *checks, error="", file="checks.py"):
    OwnChecks([OwnCheckFile(file, list(checks), error)]).write(run.folder.own_checks)


@pytest.mark.parametrize(
    ("outcome", "texts", "expected", "at_fault"),
    [
        ("PASS", [], Outcome.PASS, None),
        ("FAIL", ["first", "second"], Outcome.FAIL, AtFault.DRIVER),
        ("HARNESS", ["checks.py:3: ValueError: x"], Outcome.HARNESS, AtFault.SCENARIO),
        ("INCONCLUSIVE", ["captures/b.pcap: is missing"], Outcome.INCONCLUSIVE, None),
    ],
)
def test_the_outcome_of_a_check_is_that_of_the_run(run, outcome, texts, expected, at_fault):
    store(run, OwnCheck("feed_is_calm", 3, outcome, texts))
    verdict = judge(run.path)
    assert (verdict.outcome, verdict.at_fault) == (expected, at_fault)
    (row,) = [each for each in verdict.checks if each.name == "feed_is_calm"]
    assert (row.outcome, row.about) == (expected, "checks.py")
    if texts:
        assert row.text == "; ".join(texts)
        assert verdict.reason.startswith(f"feed_is_calm (checks.py): {row.text}")
    assert judge(run.path) == verdict


def test_a_failure_is_that_of_the_applications_if_there_are_any(run):
    one = ApplicationCase(id="one", host="b", command=("x",), stop_within_ns=1)
    run.case = run.case.model_copy(update={"applications": (one,)})
    run.write()
    store(run, OwnCheck("feed_is_calm", 3, "FAIL", ["x"]))
    (found,) = own_checks(Evidence(run.path))
    assert (found.at_fault, found.kind) == (AtFault.APPLICATION, Kind.OWN)


def test_a_broken_run_excuses_a_failure(run):
    run.manifest.complete = False
    run.write()
    store(run, OwnCheck("feed_is_calm", 3, "FAIL", ["x"]))
    (row,) = [each for each in judge(run.path).checks if each.name == "feed_is_calm"]
    assert row.outcome is Outcome.INCONCLUSIVE
    assert row.text == "inconclusive because gate manifest_complete failed: x"


def test_a_file_without_results_is_named(run):
    store(run, error="checks.py:2: SyntaxError: invalid syntax")
    (found,) = own_checks(Evidence(run.path))
    assert (found.name, found.outcome, found.about) == (NAME, Outcome.HARNESS, "checks.py")
    assert found.text == "checks.py:2: SyntaxError: invalid syntax"
    store(run)
    (found,) = own_checks(Evidence(run.path))
    assert (found.outcome, found.text) == (Outcome.HARNESS, "has no results")


def test_checks_that_were_not_executed_are_no_pass(run):
    (found,) = own_checks(Evidence(run.path))
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.text == "own-checks.json: is missing: the checks were not executed"
    assert judge(run.path).outcome is Outcome.INCONCLUSIVE


def test_the_results_of_other_files_are_no_pass(run):
    store(run, OwnCheck("feed_is_calm", 3, "PASS"), file="other.py")
    (found,) = own_checks(Evidence(run.path))
    assert found.outcome is Outcome.HARNESS
    assert "has results of other.py, expected checks.py" in found.text


@pytest.mark.parametrize(
    "document",
    ["{", "[]", {"schema": "x"}, {"files": 1}, {"files": [{"file": "checks.py", "checks": [
        {"name": "x", "line": 1, "outcome": "UNSUPPORTED"}]}]}],
)  # fmt: skip
def test_a_damaged_document_is_no_pass(run, document):
    if isinstance(document, dict):
        document = json.dumps({"schema": "windtunnel-own-checks/1", **document})
    run.folder.own_checks.write_text(document)
    (found,) = own_checks(Evidence(run.path))
    assert found.outcome is Outcome.HARNESS
    assert found.text.startswith("own-checks.json: cannot be parsed: ")


def test_the_judge_executes_no_file_of_a_run_folder(run):
    mark = run.path / "executed"
    for name in ("checks.py", "own-checks-0.py"):
        (run.path / name).write_text(f"open({str(mark)!r}, 'w')\n")
    store(run, OwnCheck("feed_is_calm", 3, "PASS"))
    assert judge(run.path).outcome is Outcome.PASS
    assert not mark.exists()
