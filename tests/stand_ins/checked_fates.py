"""The fates that captures of a run tell, beside what the middlebox decided about each frame."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.stand_ins.labelled_run import UNTOUCHED, Label, labels
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.reports.analysis.analyze import AnalysisOptions, analyze

ONE_POINT_SHARE = 0.999
SENT_MIN = 1_000


def fates(folder: Path, *captures: Path) -> list[dict[str, Any]]:
    """The table of fates that captures tell."""
    analyze([str(each) for each in captures], wanted=AnalysisOptions(fates_to=folder))
    return pq.read_table(folder).to_pylist()


def check_joined_fates(made: RunDir, folder: Path) -> list[dict[str, Any]]:
    """That the captures of both hosts tell of each frame from a to b what was decided about it.

    Returns the fates at b.
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
    """Of each frame that came to b, whether the capture of b alone tells the same fate."""
    alone = fates(folder / "one", made.capture("b"))
    seen = {
        (each["record_at"], each["frame_index"]): each["fate"]
        for each in alone
        if each["record_at"] is not None
    }
    assert {each["basis"] for each in alone} == {"inferred"}
    return [seen[each["record_at"], each["frame_index"]] == each["fate"] for each in came]


def check_inferred_fates(made: RunDir, folder: Path, came: list[dict[str, Any]]) -> None:
    """That the capture of b alone tells the same of nearly all frames that came there."""
    agreed = agreements(made, folder, came)
    assert sum(agreed) >= ONE_POINT_SHARE * len(agreed)
