"""The fate that captures tell of each frame is the one that the middlebox decided.

Whole scenarios on virtual time, their rules unchanged, with less traffic.
"""

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harness.artifact.run_dir import RunDir
from reports.analysis.analyze import Wanted, analyze
from tests.sim.simulated import SCENARIOS, run
from tests.stand_ins.labelled_run import UNTOUCHED, labels

NAMES = (
    "loss/reliable-2pct",
    "loss/unreliable-2pct",
    "loss/gilbert-elliott",
    "copies/data",
    "order/displacement",
    "order/past-nak-delay",
    "order/past-gap-fill",
    "order/across-term-change",
    "reorder/reliable-swap-and-hold",
)
ONE_POINT_SHARE = 0.999
# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(400)


def made_run(name: str, folder: Path) -> RunDir:
    text = (SCENARIOS / f"{name}.yaml").read_text()
    text = re.sub(r"bytes: \d+MiB", "bytes: 2MiB", text)
    text = re.sub(r"fidelity: \[.*\]", "fidelity: [sim]", text)
    path = folder / "scenarios" / f"{name}.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    result = run(path, folder)
    # So little traffic may be too little for a gate that counts; the decisions stand all the same.
    assert result.outcome in ("PASS", "INCONCLUSIVE"), result.reason
    (found,) = (each.parent for each in (folder / "runs").glob("*/*/captures"))
    return RunDir(found)


def fates(folder: Path, *captures: Path) -> list[dict]:
    analyze([str(each) for each in captures], wanted=Wanted(fates_to=folder))
    return pq.read_table(folder).to_pylist()


@pytest.mark.parametrize("name", NAMES)
def test_fates_agree_with_the_decisions(name, tmp_path):
    made = made_run(name, tmp_path)
    decided = labels(made)
    assert decided, "nothing was struck"
    joined = fates(tmp_path / "both", made.capture("a"), made.capture("b"))
    sent = [each for each in joined if each["vantage_point"] == "a"]
    came = [each for each in joined if each["vantage_point"] == "b"]
    assert len(sent) > 1_000

    def label(each):
        key = each["stream_id"], each["position"], each["attempt"]
        return decided.get(key, UNTOUCHED)

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
    alone = fates(tmp_path / "one", made.capture("b"))
    seen = {
        (each["record_at"], each["frame_index"]): each["fate"]
        for each in alone
        if each["record_at"] is not None
    }
    assert {each["basis"] for each in alone} == {"inferred"}
    agreed = [seen[each["record_at"], each["frame_index"]] == each["fate"] for each in came]
    assert sum(agreed) >= ONE_POINT_SHARE * len(agreed)
