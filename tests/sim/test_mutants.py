"""Mutants of the driver on virtual time are each detected by the intended check."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.unit.harness.exam.planted_runs import mutant_of, run_planted
from windtunnel.harness.exam.mutant import NONE
from windtunnel.harness.exam.worker_run import RUN_LIMIT_S

# A process for each run; the first compiles the driver with all mutants in it, and others wait.
pytestmark = [pytest.mark.full, pytest.mark.timeout(RUN_LIMIT_S + 300)]
NAMES = [
    "resend-only-the-first-datagram",
    "linger-ignored",
    "publisher-limit-too-short",
    "status-acknowledges-unread",
    "no-heartbeats",
    "setup-for-ever",
    "gap-fills-not-counted",
    "fill-over-late-data",
    "invalid-datagram-not-counted",
    "under-runs-counted-as-over-runs",
    "clean-swapped-offset-and-length",
]


def test_without_a_mutant_the_driver_passes(tmp_path):
    result = run_planted("exam/bursts", NONE, tmp_path, "sim")
    assert result.outcome == "PASS", result


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    # Run in parallel, since each is a process that keeps one core busy.
    run_mutant = partial(_run_in_its_scenario, tmp_path_factory.mktemp("mutants"))
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(NAMES, pool.map(run_mutant, NAMES), strict=True))


def _run_in_its_scenario(folder, name):
    own = folder / name
    own.mkdir()
    return run_planted(mutant_of(name).scenarios[0], name, own, "sim")


@pytest.mark.parametrize("name", NAMES)
def test_each_mutant_is_killed_by_an_intended_check(name, results):
    result = results[name]
    assert result.outcome == "FAIL", result
    assert set(result.checks) & set(mutant_of(name).killed_by), result
