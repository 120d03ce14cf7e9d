"""Gaps of an unreliable stream are filled at once."""

import pytest

from tests.unit.harness.verdict.synthetic_run import make_run
from windtunnel.harness.verdict.checks.delivery.prompt_filling import gap_fills_prompt
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome


def look(run, fidelity="netns", late_ns=0):
    """Check a run in which rcv-pos moves late."""
    run.case = run.case.model_copy(update={"fidelity": fidelity})
    run.samples["b"] = [
        (time_ns + late_ns if name == "rcv-pos" and value else time_ns, name, value)
        for time_ns, name, value in run.samples["b"]
    ]
    return gap_fills_prompt(Evidence(run.write()), run.traffic)


@pytest.mark.parametrize(
    ("fidelity", "late_ns", "outcome"),
    [
        ("netns", 0, Outcome.PASS),
        ("netns", 60_000_000, Outcome.PASS),
        ("netns", 120_000_000, Outcome.FAIL),
        ("sim", 0, Outcome.PASS),
        ("sim", 60_000_000, Outcome.FAIL),
    ],
)
def test_late_fills_are_reported(tmp_path, fidelity, late_ns, outcome):
    finding = look(make_run(tmp_path, reliable=False), fidelity, late_ns)
    assert finding.outcome is outcome, finding.text
    assert ("after it could be detected" in finding.text) == (outcome is Outcome.FAIL)


def test_reliable_streams_are_not_judged(tmp_path):
    finding = look(make_run(tmp_path))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "gaps are repaired" in finding.text


def test_missing_samples_are_inconclusive(tmp_path):
    run = make_run(tmp_path, reliable=False)
    folder = run.write()
    run.folder.host("b").counter_samples.unlink()
    assert gap_fills_prompt(Evidence(folder), run.traffic).outcome is Outcome.INCONCLUSIVE
