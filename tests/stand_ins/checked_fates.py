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


def fates(folder: Path, *captures: Path) -> list[dict[str, Any]]:
    """The table of outcomes inferred from captures."""
    analyze([str(each) for each in captures], options=AnalysisOptions(outcomes_dir=folder))
    return pq.read_table(folder).to_pylist()


def check_joined_fates(made: RunDir, folder: Path) -> list[dict[str, Any]]:
    """Check that the captures of both hosts imply the decided outcome of each frame from a to b.

    Returns the outcomes at b.
    """
    decided = labels(made)
    assert decided, "nothing was struck"
    joined = fates(folder / "both", made.capture("a"), made.capture("b"))
    sent = [each for each in joined if each["vantage_point"] == "a"]
    came = [each for each in joined if each["vantage_point"] == "b"]
    assert len(sent) > SENT_MIN

    def label(each: dict[str, Any]) -> Label:
        return decided.get((each["stream_id"], each["position"], each["attempt"]), UNTOUCHED)

    struck = set()
    for each in sent:
        (onward,) = each["onward"]
        assert (onward["arrived"], onward["copies"]) == (label(each).arrives, label(each).copies)
        struck.add((each["stream_id"], each["position"], each["attempt"]))
    assert set(decided) <= struck
    for each in came:
        is_original = each["fate"] != "duplicate"
        if each["fate"] in ("reordered", "late"):
            assert label(each).is_delayed
        elif is_original and each["attempt"] == 1:
            assert each["fate"] == "first"
        elif is_original:
            assert each["fate"] == "resent"
    return came


def agreements(made: RunDir, folder: Path, came: list[dict[str, Any]]) -> list[bool]:
    """For each frame that arrived at b, whether the capture of b alone implies the same outcome."""
    alone = fates(folder / "one", made.capture("b"))
    seen = {
        (each["record_at"], each["frame_index"]): each["fate"]
        for each in alone
        if each["record_at"] is not None
    }
    assert {each["basis"] for each in alone} == {"inferred"}
    return [seen[each["record_at"], each["frame_index"]] == each["fate"] for each in came]


def check_inferred_fates(made: RunDir, folder: Path, came: list[dict[str, Any]]) -> None:
    """Check that the capture of b alone implies the same for nearly all frames that arrived
    there."""
    agreed = agreements(made, folder, came)
    assert sum(agreed) >= ONE_POINT_SHARE * len(agreed)
