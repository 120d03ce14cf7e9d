"""The outcome of each frame inferred from captures is the one that the middlebox decided.

Whole scenarios on virtual time, their rules unchanged, with less traffic.
"""

import re
from pathlib import Path

import pytest

from tests.sim.simulated import SCENARIOS
from tests.stand_ins.checked_fates import check_inferred_fates, check_joined_fates
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.suite.runner import run_suite

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
# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(400)


def shortened(name: str, folder: Path) -> Path:
    text = (SCENARIOS / f"{name}.yaml").read_text()
    text = re.sub(r"bytes: \d+MiB", "bytes: 2MiB", text)
    text = re.sub(r"fidelity: \[.*\]", "fidelity: [sim]", text)
    path = folder / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    files = [shortened(name, folder / "scenarios") for name in NAMES]
    made = run_suite(files, fidelity="sim", out=folder / "runs", jobs=2)
    return {each.scenario: each for each in made.runs}


@pytest.mark.parametrize("name", NAMES)
def test_fates_agree_with_the_decisions(name, results, tmp_path):
    made = results[name]
    # So little traffic may be too little for a gate that counts; the decisions stand all the same.
    assert made.outcome in ("PASS", "INCONCLUSIVE"), made.reason
    came = check_joined_fates(RunDir(made.run_dir), tmp_path)
    check_inferred_fates(RunDir(made.run_dir), tmp_path, came)
