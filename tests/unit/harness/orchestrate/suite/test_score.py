"""The score of a suite: without known failures, by scenario, with the exit code of the worst."""

import datetime
import json
from pathlib import Path

import pytest

from tests.unit.harness.orchestrate.labs.test_space import MAIN
from windtunnel.harness.artifact.run.manifest import Manifest, SubjectFacts
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.suite.score import Score
from windtunnel.harness.scenario.known import KnownFailure
from windtunnel.harness.scenario.loader import load_scenario
from windtunnel.harness.verdict.core.known import KnownFailureList
from windtunnel.harness.verdict.judge import SCHEMA

DAY = datetime.date(2027, 1, 1)
NAME = "loss/reliable-2pct"


@pytest.fixture(scope="module")
def scenario():
    return load_scenario(MAIN)


def limited(scenario, share_ppb: int):
    budget = scenario.budget.model_copy(update={"failures": share_ppb})
    return scenario.model_copy(update={"budget": budget})


def run_folder(folder: Path, *violations: tuple[str, str]) -> RunDir:
    """Return a run folder whose verdict has these failed checks, with their kinds."""
    run = RunDir(folder)
    run.make()
    manifest = Manifest("id", NAME, 1, "netns", [])
    manifest.subjects = {"a": SubjectFacts("publisher", "ours", "1.53.0")}
    manifest.write(run.manifest)
    checks = [{"name": name, "kind": kind, "outcome": "FAIL"} for name, kind in violations]
    checks.append({"name": "delivered_once", "kind": "safety", "outcome": "PASS"})
    run.verdict.write_text(json.dumps({"schema": SCHEMA, "checks": checks}))
    return run


def known(check: str, expires: str = "2027-12-31") -> KnownFailure:
    return KnownFailure(
        scenario=NAME,
        check=check,
        subject="ours",
        owner="Jane",
        issue="https://example.org/1",
        expires=datetime.date.fromisoformat(expires),
    )


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (["PASS", "PASS"], 0),
        (["PASS", "INCONCLUSIVE"], 2),
        (["INCONCLUSIVE", "HARNESS"], 3),
        (["HARNESS", "FAIL", "PASS"], 1),
        (["PASS", "UNSUPPORTED"], 0),
    ],
)
def test_without_a_limit_the_worst_outcome_gives_the_exit_code(scenario, tmp_path, outcomes, code):
    score = Score(KnownFailureList([], DAY))
    for outcome in outcomes:
        assert score.add(scenario, RunDir(tmp_path), outcome, "why") == (outcome, "why")
    assert score.exit_code() == code


def test_a_known_failure_is_reported_and_does_not_count(scenario, tmp_path):
    score = Score(KnownFailureList([known("naks_paced")], DAY))
    folder = run_folder(tmp_path, ("naks_paced", "timing"))
    outcome, reason = score.add(scenario, folder, "FAIL", "too fast")
    assert outcome == "KNOWN"
    entry = "naks_paced (Jane, https://example.org/1, until 2027-12-31)"
    assert reason.startswith(f"known failure: {entry}: ")
    assert reason.endswith("too fast")
    assert score.exit_code() == 0
    (result,) = score.scenarios()
    assert (result.known, result.runs, result.outcome) == (1, 0, "PASS")
    assert "1 more had known failures" in result.text
    assert score.remarks() == []


def test_an_expired_entry_fails_the_run_and_reports_so(scenario, tmp_path):
    score = Score(KnownFailureList([known("naks_paced", "2027-01-01")], DAY))
    folder = run_folder(tmp_path, ("naks_paced", "timing"))
    outcome, reason = score.add(scenario, folder, "FAIL", "too fast")
    assert outcome == "FAIL"
    assert reason.startswith("known failure has expired: naks_paced")
    assert score.exit_code() == 1
    assert "has expired" in score.remarks()[0]


def test_a_fixed_entry_is_reported_and_the_suite_passes(scenario, tmp_path):
    score = Score(KnownFailureList([known("naks_paced")], DAY))
    assert score.add(scenario, run_folder(tmp_path), "PASS", "all holds") == ("PASS", "all holds")
    assert score.exit_code() == 0
    assert "passed for ours, but is listed as a known failure" in score.remarks()[0]


def test_a_run_with_a_harness_error_is_never_known(scenario, tmp_path):
    score = Score(KnownFailureList([known("naks_paced")], DAY))
    folder = run_folder(tmp_path, ("naks_paced", "timing"))
    assert score.add(scenario, folder, "HARNESS", "the relay died")[0] == "HARNESS"


@pytest.mark.parametrize(("kind", "code"), [("timing", 0), ("protocol", 1), ("safety", 1)])
def test_a_limit_tolerates_timing_failures_and_no_others(scenario, tmp_path, kind, code):
    score = Score(KnownFailureList([], DAY))
    tolerant = limited(scenario, 200_000_000)
    for _ in range(60):
        score.add(tolerant, run_folder(tmp_path / "good"), "PASS", "")
    score.add(tolerant, run_folder(tmp_path / "bad", ("a_check", kind)), "FAIL", "")
    assert score.exit_code() == code
    (result,) = score.scenarios()
    assert (result.failures, result.runs, result.limit) == (1, 61, 0.2)


def test_a_damaged_folder_stops_no_score(scenario, tmp_path):
    folder = run_folder(tmp_path)
    folder.verdict.write_text("{")
    folder.manifest.write_text("{")
    score = Score(KnownFailureList([known("naks_paced")], DAY))
    assert score.add(scenario, folder, "HARNESS", "torn") == ("HARNESS", "torn")


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        (1, "0 of 1 run failed"),
        (9, "0 of 9 runs failed"),
        (10, "0 of 10 runs failed, failure rate 0.00% to 30.85% (95% confidence)"),
    ],
)
def test_the_interval_of_a_few_runs_is_left_out(scenario, tmp_path, runs, text):
    score = Score(KnownFailureList([], DAY))
    for _ in range(runs):
        score.add(scenario, run_folder(tmp_path), "PASS", "")
    (result,) = score.scenarios()
    assert result.text == text
    assert result.high == round(result.high, 6)


def test_the_interval_of_a_few_runs_is_compared_with_a_limit(scenario, tmp_path):
    score = Score(KnownFailureList([], DAY))
    score.add(limited(scenario, 200_000_000), run_folder(tmp_path), "PASS", "")
    (result,) = score.scenarios()
    assert "sample too small to compare with the limit of 20.00%" in result.text
    assert (result.low, result.high) == (0.0, 0.975)
