"""Runs scenarios on a throttled machine: no run may FAIL, however late the drivers are.

    python -m tests.overload [--runs 6] [--how quota load]

    quota   the run and all its processes in a control group that has half of each processor
    load    four busy processes per processor beside it

A sound driver without enough processor time is late, not wrong: each run must PASS, or be
INCONCLUSIVE by the gate host_was_not_overloaded. Needs root; exits with 1 if any run has another
outcome.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from windtunnel.harness.orchestrate.suite.runner import run_suite

REPOSITORY = Path(__file__).resolve().parents[2]
SCENARIO = REPOSITORY / "scenarios" / "loss" / "reliable-2pct.yaml"
GROUPS = Path("/sys/fs/cgroup")
PERIOD_US = 100_000
GOOD = ("PASS", "INCONCLUSIVE")
BUSY = "while True: pass"
BUSY_PER_PROCESSOR = 4


@contextlib.contextmanager
def quota() -> Iterator[None]:
    """Limit this process and its children to half of the machine's processors.

    The group has the maximum weight, so that the quota limits it and not other processes.
    """
    quota_us = PERIOD_US * (os.cpu_count() or 1) // 2
    is_second = (GROUPS / "cgroup.controllers").exists()
    root = GROUPS if is_second else GROUPS / "cpu"
    group = root / f"windtunnel-overload-{os.getpid()}"
    group.mkdir()
    try:
        if is_second:
            (group / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
            (group / "cpu.weight").write_text("10000")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
            (group / "cpu.shares").write_text("262144")
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        (root / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


@contextlib.contextmanager
def load() -> Iterator[None]:
    """Compete for the processors with busy processes."""
    count = BUSY_PER_PROCESSOR * (os.cpu_count() or 1)
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.overload", description=__doc__)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--how", nargs="+", choices=["quota", "load"], default=["quota", "load"])
    options = parser.parse_args()
    wrong = 0
    for how in options.how:
        with tempfile.TemporaryDirectory() as folder, {"quota": quota, "load": load}[how]():
            result = run_suite([SCENARIO], seeds=options.runs, out=Path(folder))
            for run in result.runs:
                print(f"{how}: seed {run.seed}: {run.outcome}: {run.reason}", flush=True)
            wrong += sum(run.outcome not in GOOD for run in result.runs)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
