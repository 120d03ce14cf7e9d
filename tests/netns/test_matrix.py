"""Concurrent runs in separate labs have the results of sequential ones, and leave nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.netns.test_real_aeron import REPOSITORY, SCENARIO
from tests.soundness import assert_sound
from windtunnel.harness.artifact.middlebox.decision import read_decisions
from windtunnel.harness.artifact.run.matrix import Matrix
from windtunnel.harness.artifact.run.suite import Suite
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.artifact.suite_dir import MatrixDir
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.suite.runner import SuiteResult, run_suite
from windtunnel.harness.orchestrate.teardown import clean
from windtunnel.harness.topology import addressing

pytestmark = [
    pytest.mark.netns,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        bool(privileges.missing()), reason="no right to make network namespaces: run as root"
    ),
]
WAIT_S = 120.0
RUN_COUNT = 4


def scenario(folder: Path, size: str = "256KiB") -> Path:
    file = folder / "small-loss.yaml"
    file.write_text(SCENARIO.replace("2MiB", size))
    return file


def lost_by_position(folder: Path) -> list[tuple[int, ...]]:
    """Return a run's decisions about the first transmissions of frames that have a position.

    The number of retransmissions depends on timing: on a slow host more NAKs are in flight.
    """
    rows = read_decisions(RunDir(folder).decisions)
    fields = ("link", "rule", "action", "stream_id", "position", "frame_length")
    keyed = rows[(rows["timing_sensitive"] == 0) & (rows["attempt"] == 1)]
    return sorted(zip(*(keyed[field].tolist() for field in fields), strict=True))


def assert_all_sound(result: SuiteResult) -> None:
    """Assert that all checks hold, except those that a slow machine excuses."""
    assert len(result.runs) == RUN_COUNT
    for run in result.runs:
        assert run.outcome == assert_sound(run.run_dir).outcome


@pytest.mark.full
def test_four_concurrent_runs_equal_four_sequential_ones(tmp_path):
    file = scenario(tmp_path)
    results = [
        run_suite([file], seeds=RUN_COUNT, out=tmp_path / f"runs-{jobs}", jobs=jobs)
        for jobs in (1, RUN_COUNT)
    ]
    serial, parallel = results
    assert_all_sound(serial)
    assert_all_sound(parallel)
    by_seed = {run.seed: lost_by_position(run.run_dir) for run in serial.runs}
    assert all(len(lost) > 1 for lost in by_seed.values())
    assert len({str(lost) for lost in by_seed.values()}) == RUN_COUNT
    assert {run.seed: lost_by_position(run.run_dir) for run in parallel.runs} == by_seed
    assert overlap(parallel), "the runs were not concurrent"
    assert not overlap(serial)


def overlap(result: SuiteResult) -> bool:
    """Return whether any run began before another had ended."""
    runs = sorted(
        Suite.read(result.suite_dir / "suite.json").runs, key=lambda each: each.started_ns
    )
    ends = np.array([each.ended_ns for each in runs[:-1]])
    return bool((np.array([each.started_ns for each in runs[1:]]) < ends).any())


@pytest.fixture
def started(tmp_path):
    """Start `windtunnel matrix`, and wait until the traffic of two long runs has begun."""
    file = scenario(tmp_path, "1GiB")
    argv = [sys.executable, "-m", "windtunnel.harness", "matrix", str(file), "--fidelity", "netns"]
    argv += ["--publishers", "ours", "--subscribers", "ours", "--seeds", "3", "--jobs", "2"]
    argv += ["--out", str(tmp_path / "runs")]
    harness = subprocess.Popen(argv, cwd=REPOSITORY, stdout=subprocess.PIPE)
    try:
        wait_for(lambda: len(traffic_begun(tmp_path)) == 2, "traffic of two runs")
        yield harness
    finally:
        harness.kill()
        harness.communicate()


def traffic_begun(folder: Path) -> list[Path]:
    """Return the runs whose publisher has reported progress."""
    logs = folder.glob("runs/matrix-*/*/*/hosts/a/publisher-one.log")
    return [log.parents[2] for log in logs if b"progress" in log.read_bytes()]


def wait_for(condition, what: str) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.05)


def resources(folder: Path) -> list[str]:
    """Return all resources on the machine of labs whose runs are in a folder."""
    runs = folder / "runs"
    tokens = {
        addressing.token(str(path.parent.relative_to(runs)))
        for path in runs.glob("matrix-*/*/*/repro.txt")
    }
    assert tokens
    names = [path.name for path in clean.NAMESPACE_FOLDER.glob("wt-*")]
    found = [name for name in names if name.split("-")[1] in tokens]
    memory = [Path("/dev/shm") / f"windtunnel-{token}" for token in tokens]
    return found + [str(path) for path in memory if path.exists()]


@pytest.mark.full
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_all_runs_and_leaves_folders_alone(tmp_path, started, number, code):
    assert resources(tmp_path)
    started.send_signal(number)
    started.communicate(timeout=WAIT_S)
    assert started.returncode == code
    assert resources(tmp_path) == []
    (folder,) = (tmp_path / "runs").glob("matrix-*")
    document = Matrix.read(MatrixDir(folder).document)
    (cell,) = document.cells
    assert (cell.outcome, len(cell.runs), cell.planned_count) == ("CANCELLED", 2, 3)
    assert document.exit_code == code


@pytest.mark.full
def test_a_matrix_that_is_killed_leaves_nothing(tmp_path, started):
    assert resources(tmp_path)
    started.send_signal(signal.SIGKILL)
    wait_for(lambda: resources(tmp_path) == [], "the labs' end")


@pytest.mark.full
def test_a_run_whose_worker_is_killed_is_a_harness_failure_and_leaves_nothing(tmp_path, started):
    victim = owner_of_a_lab(tmp_path)
    os.kill(victim, signal.SIGKILL)
    (folder,) = (tmp_path / "runs").glob("matrix-*")
    document = MatrixDir(folder).document
    wait_for(lambda: json.loads(document.read_text())["cells"][0]["runs"], "the lost run's end")
    (lost,) = Matrix.read(document).cells[0].runs
    assert (lost.outcome, lost.reason.endswith("exit code -9")) == ("HARNESS", True)
    started.send_signal(signal.SIGTERM)
    started.communicate(timeout=WAIT_S)
    wait_for(lambda: resources(tmp_path) == [], "the labs' end")


def owner_of_a_lab(folder: Path) -> int:
    """Return the id of the process that owns one of the labs."""
    records = sorted((folder / "runs" / ".lab").glob("*.json"))
    assert len(records) == 2
    pid: int = json.loads(records[0].read_text())["pid"]
    assert b"suite.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return pid
