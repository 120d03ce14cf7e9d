"""The fate that captures tell of each frame is the one that the middlebox decided.

Whole scenarios on virtual time, their rules unchanged, with less traffic.
"""

import re
from pathlib import Path

import pytest

from harness.artifact.run_dir import RunDir
from tests.sim.simulated import SCENARIOS, run
from tests.stand_ins.checked_fates import check_inferred_fates, check_joined_fates

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


@pytest.mark.parametrize("name", NAMES)
def test_fates_agree_with_the_decisions(name, tmp_path):
    made = made_run(name, tmp_path)
    came = check_joined_fates(made, tmp_path)
    check_inferred_fates(made, tmp_path, came)
