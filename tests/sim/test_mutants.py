"""A few mutants on virtual time, each detected by the check intended for it."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.unit.harness.exam.planted_runs import run_planted
from windtunnel.harness.exam.mutant import NONE, by_name
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


def test_with_none_at_work_the_driver_passes(tmp_path):
    made = run_planted("exam/bursts", NONE, tmp_path, "sim")
    assert made.outcome == "PASS", made


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    # Beside each other, since each is a process that keeps one core busy.
    run_mutant = partial(_run_in_its_scenario, tmp_path_factory.mktemp("mutants"))
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(NAMES, pool.map(run_mutant, NAMES), strict=True))


def _run_in_its_scenario(folder, name):
    own = folder / name
    own.mkdir()
    return run_planted(by_name(name).scenarios[0], name, own, "sim")


@pytest.mark.parametrize("name", NAMES)
def test_it_is_killed_by_a_check_that_should_say_no(name, results):
    made = results[name]
    assert made.outcome == "FAIL", made
    assert set(made.checks) & set(by_name(name).killed_by), made
