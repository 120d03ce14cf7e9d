"""A handful of mutants on virtual time, each found by a check of its own: none may go unnoticed."""

import threading

import pytest

from harness.exam.child_run import make_run
from harness.exam.mutant import NONE, by_name

# A process for each run; the first compiles the driver with all mutants in it.
pytestmark = pytest.mark.timeout(900)


def run(scenario, mutant, folder):
    payload = folder / "payload"
    payload.write_bytes(bytes(range(251)) * 1000)
    return make_run(
        scenario,
        mutant,
        fidelity="sim",
        payload=payload,
        out=folder / "runs",
        stop=threading.Event(),
    )


def test_with_none_at_work_the_driver_passes(tmp_path):
    made = run("exam/bursts", NONE, tmp_path)
    assert made.outcome == "PASS", made


@pytest.mark.parametrize(
    "name",
    [
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
    ],
)
def test_it_is_killed_by_a_check_that_should_say_no(tmp_path, name):
    mutant = by_name(name)
    made = run(mutant.scenarios[0], name, tmp_path)
    assert made.outcome == "FAIL", made
    assert set(made.checks) & set(mutant.killed_by), made
