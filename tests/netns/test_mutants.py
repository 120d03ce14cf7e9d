"""A handful of mutants, each a different room's, over a real link: none may go unnoticed."""

import pytest

from tests.unit.harness.exam.planted_runs import run_planted
from windtunnel.harness.exam.mutant import by_name
from windtunnel.harness.exam.worker_run import RUN_LIMIT_S
from windtunnel.harness.orchestrate.labs import privileges

pytestmark = [
    pytest.mark.full,
    pytest.mark.netns,
    pytest.mark.skipif(
        bool(privileges.missing()), reason="no right to make network namespaces: run as root"
    ),
    # A process for each run, and kernels that the edit changes are compiled.
    pytest.mark.timeout(RUN_LIMIT_S + 300),
]


@pytest.mark.parametrize(
    ("name", "check"),
    [
        # What bytes, or cause and effect, prove: no slowness of this machine can excuse it.
        ("insert-loses-flags", "positions_covered"),
        ("fragments-assembled-backwards", "delivered_once"),
        ("nak-on-unreliable-stream", "no_naks"),
    ],
)
def test_it_is_killed_by_the_check_that_should_say_no(tmp_path, name, check):
    run = run_planted(by_name(name).scenarios[0], name, tmp_path, "netns")
    assert run.outcome == "FAIL", run
    assert check in run.checks
    assert check in by_name(name).killed_by
