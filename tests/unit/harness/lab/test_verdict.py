"""The text of a verdict, as a failed test shows it."""

from pathlib import Path

import pytest

from windtunnel.harness.lab.verdict import Verdict, read_verdict


def test_a_passed_verdict_raises_nothing() -> None:
    Verdict("PASS", "", Path("runs/one")).assert_passed()


@pytest.mark.parametrize("outcome", ["FAIL", "INCONCLUSIVE", "HARNESS", "UNSUPPORTED", "CANCELLED"])
def test_any_other_outcome_is_an_assertion_with_the_places(outcome: str) -> None:
    verdict = Verdict(outcome, "delivered_once: lost", Path("runs/one"), Path("runs/report.html"))
    with pytest.raises(AssertionError) as caught:
        verdict.assert_passed()
    lines = str(caught.value).splitlines()
    assert lines == [
        f"{outcome}: delivered_once: lost",
        "run folder: runs/one",
        "report: runs/report.html",
    ]


def test_a_run_that_was_never_judged_has_no_figures(tmp_path: Path) -> None:
    verdict = read_verdict(tmp_path, "CANCELLED", "cancelled", None, "windtunnel run x")
    assert (verdict.results, verdict.checks) == ((), ())
    assert verdict.text.endswith("repeat: windtunnel run x")
