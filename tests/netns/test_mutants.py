"""Mutants of different parts of the driver are detected over a real link."""

import pytest

from tests.unit.harness.exam.planted_runs import mutant_of, run_planted
from windtunnel.harness.exam.worker_run import RUN_LIMIT_S
from windtunnel.harness.orchestrate.labs import privileges

pytestmark = [
    pytest.mark.full,
    pytest.mark.netns,
    pytest.mark.skipif(
        bool(privileges.missing()), reason="no right to make network namespaces: run as root"
    ),
    # Each run is a process, which compiles the kernels that the mutant changes.
    pytest.mark.timeout(RUN_LIMIT_S + 300),
]


@pytest.mark.parametrize(
    ("name", "check"),
    [
        # Checks of bytes or of cause and effect, which a slow machine does not excuse.
        ("insert-loses-flags", "positions_covered"),
        ("fragments-assembled-backwards", "delivered_once"),
        ("nak-on-unreliable-stream", "no_naks"),
    ],
)
def test_each_mutant_is_killed_by_the_intended_check(tmp_path, name, check):
    run = run_planted(mutant_of(name).scenarios[0], name, tmp_path, "netns")
    assert run.outcome == "FAIL", run
    assert check in run.checks
    assert check in mutant_of(name).killed_by
