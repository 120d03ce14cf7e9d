"""The outcome of each frame inferred from captures equals the decision of the middlebox.

Our scenarios run over real sockets with unchanged rules and less traffic. Where frames are held
longer than a receiver waits, and are duplicated as well, one capture distinguishes a late original
from a copy of its repair only by packet identifications: Linux sets them, and the relay keeps them.
"""

import re

import pytest

from tests.sim.simulated import SCENARIOS
from tests.stand_ins.checked_outcomes import check_inferred_outcomes, check_joined_outcomes
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.suite.runner import run_suite

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(
        bool(privileges.missing()), reason="no right to make network namespaces: run as root"
    ),
    # Kernels are compiled on a machine's first run.
    pytest.mark.timeout(600),
]


def synthetic_run(name, folder):
    text = (SCENARIOS / f"{name}.yaml").read_text()
    path = folder / "scenarios" / f"{name}.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(re.sub(r"bytes: \d+MiB", "bytes: 2MiB", text))
    (created,) = run_suite([path], fidelity="netns", out=folder / "runs").runs
    # A gate may need more traffic than this; the decisions are valid nevertheless.
    assert created.outcome in ("PASS", "INCONCLUSIVE"), created
    return RunDir(created.run_dir)


@pytest.mark.full
def test_losses_are_reported_by_two_captures_and_by_one(tmp_path):
    created = synthetic_run("loss/reliable-2pct", tmp_path)
    check_inferred_outcomes(created, tmp_path, check_joined_outcomes(created, tmp_path))


def test_disorder_and_copies_are_reported_by_two_captures_and_by_one(tmp_path):
    created = synthetic_run("reorder/reliable-swap-and-hold", tmp_path)
    check_inferred_outcomes(created, tmp_path, check_joined_outcomes(created, tmp_path))
