"""Compares frame outcomes inferred from a run's captures with the middlebox's decisions."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.stand_ins.labelled_run import UNTOUCHED, Label, labels
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.options import AnalysisOptions

ONE_POINT_SHARE = 0.999
SENT_MIN = 1_000


def outcomes(folder: Path, *captures: Path) -> list[dict[str, Any]]:
    """Return the table of outcomes inferred from captures."""
    analyze([str(each) for each in captures], options=AnalysisOptions(outcomes_dir=folder))
    return pq.read_table(folder).to_pylist()


def check_joined_outcomes(run: RunDir, folder: Path) -> list[dict[str, Any]]:
    """Check that the captures of both hosts imply the decided outcome of each frame from a to b.

    Returns the outcomes at b.
    """
    decided = labels(run)
    assert decided, "no rule matched a frame"
    joined = outcomes(folder / "both", run.capture("a"), run.capture("b"))
    sent = [each for each in joined if each["vantage_point"] == "a"]
    arrived = [each for each in joined if each["vantage_point"] == "b"]
    assert len(sent) > SENT_MIN

    def label(each: dict[str, Any]) -> Label:
        return decided.get((each["stream_id"], each["position"], each["attempt"]), UNTOUCHED)

    transmissions = set()
    for each in sent:
        (onward,) = each["onward"]
        assert (onward["arrived"], onward["copies"]) == (label(each).arrives, label(each).copies)
        transmissions.add((each["stream_id"], each["position"], each["attempt"]))
    assert set(decided) <= transmissions
    for each in arrived:
        is_original = each["outcome"] != "duplicate"
        if each["outcome"] in ("reordered", "late"):
            assert label(each).is_delayed
        elif is_original and each["attempt"] == 1:
            assert each["outcome"] == "first"
        elif is_original:
            assert each["outcome"] == "resent"
    return arrived


def agreements(run: RunDir, folder: Path, arrived: list[dict[str, Any]]) -> list[bool]:
    """Return for each frame that arrived at b whether b's capture implies the same outcome."""
    alone = outcomes(folder / "one", run.capture("b"))
    outcome_of = {
        (each["record_at"], each["frame_index"]): each["outcome"]
        for each in alone
        if each["record_at"] is not None
    }
    assert {each["basis"] for each in alone} == {"inferred"}
    return [
        outcome_of[each["record_at"], each["frame_index"]] == each["outcome"] for each in arrived
    ]


def check_inferred_outcomes(run: RunDir, folder: Path, arrived: list[dict[str, Any]]) -> None:
    """Check that the capture of b alone implies the same outcome for nearly all frames that arrived
    there."""
    agreed = agreements(run, folder, arrived)
    assert sum(agreed) >= ONE_POINT_SHARE * len(agreed)
