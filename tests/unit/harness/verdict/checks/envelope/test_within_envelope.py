"""A simulated run whose figures differ from those of sound drivers FAILs, and only such a run."""

from types import SimpleNamespace

import pytest

from tests.unit.harness.verdict.synthetic_run import make_run
from windtunnel.harness.artifact.run.manifest import Manifest, SubjectFacts
from windtunnel.harness.artifact.run.result_row import ResultRow
from windtunnel.harness.verdict.checks.envelope import within_envelope as module
from windtunnel.harness.verdict.checks.envelope.bands import Distribution, Envelope, case_digest
from windtunnel.harness.verdict.checks.envelope.within_envelope import NAME, within_envelope
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome

GAPS = {"gaps": 150, "naks": 180, "requested_gaps": 120, "repair_p50_ns": 1_000_000}


@pytest.fixture
def case(tmp_path, monkeypatch):
    """A simulated case with an envelope of the driver `ours`."""
    found = make_run(tmp_path).case.model_copy(update={"fidelity": "sim"})
    figures = {
        "naks_per_gap": {"ours": Distribution(9, 1.4, 1.5, 1.6)},
        "repair_p50": {"ours": Distribution(9, 900_000, 1_000_000, 1_100_000)},
    }
    envelope = Envelope(case_digest(found), 5, 9, ("ours",), {"one at b": figures})
    monkeypatch.setattr(module, "envelopes", lambda: {found.name: envelope})
    return found


def evidence(**subjects):
    manifest = Manifest("made", "made/by-hand", 1, "sim", [], complete=True)
    manifest.subjects = subjects or {"a": SubjectFacts("publisher", "ours")}
    return SimpleNamespace(manifest=manifest)


def judged(case, found=None, **values):
    rows = [ResultRow("one", "a", "b", **{**GAPS, **values})]
    return within_envelope(found or evidence(), case, rows)


def test_figures_within_their_bands_pass(case):
    (finding,) = judged(case)
    assert (finding.name, finding.outcome) == (NAME, Outcome.PASS)
    assert finding.text == "2 figures within the range of sound drivers"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (
            {"naks": 360},
            "naks_per_gap is 3 NAKs for each gap: expected 1.12 to 2, because sound drivers "
            "had 1.4 to 1.6 in 9 runs with the seeds 5 to 13",
        ),
        (
            {"repair_p50_ns": 2_000_000},
            "repair_p50 is 2 ms: expected 0.72 ms to 1.38 ms, because sound drivers "
            "had 0.9 ms to 1.1 ms in 9 runs with the seeds 5 to 13",
        ),
        (
            {"repair_p50_ns": 500_000},
            "repair_p50 is 0.5 ms: expected 0.72 ms to 1.38 ms, because sound drivers "
            "had 0.9 ms to 1.1 ms in 9 runs with the seeds 5 to 13",
        ),
    ],
)
def test_a_figure_outside_of_its_band_fails_with_the_band_and_the_seeds(case, values, text):
    (finding,) = judged(case, **values)
    assert finding.outcome is Outcome.FAIL
    assert (finding.about, finding.kind, finding.text) == ("one at b", Kind.TIMING, text)


def test_each_figure_outside_is_a_finding(case):
    found = judged(case, naks=360, repair_p50_ns=2_000_000)
    assert [each.text.split()[0] for each in found] == ["naks_per_gap", "repair_p50"]


def test_a_case_without_an_envelope_is_not_compared(case):
    for changed in (
        {"fidelity": "netns"},
        {"name": "made/other"},
        {"faults": ()},
        {"replays": "20260101T000000Z-0000"},
        {"live": True},
    ):
        assert judged(case.model_copy(update=changed), naks=360) is None
    for unknown in (
        evidence(a=SubjectFacts("publisher", "pyaeron")),
        evidence(a=SubjectFacts("publisher", "ours"), b=SubjectFacts("subscriber", "pyaeron")),
        evidence(a=SubjectFacts("publisher", "ours", settings={"WINDTUNNEL_NAK_ALL_GAPS": "1"})),
        SimpleNamespace(manifest=Missing("run.json", "is missing")),
    ):
        assert judged(case, unknown, naks=360) is None
