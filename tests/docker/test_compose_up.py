"""The main job in containers, both ways: started by compose, and by the harness on the machine."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.orchestrate.compose_file import REPOSITORY

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

RUN_TIMEOUT_S = 600
SCENARIO = "loss/reliable-2pct"


def verdicts(suite: Path) -> list[str]:
    """The outcomes of a suite's runs, from the folder that it left."""
    document = json.loads((suite / "suite.json").read_text())
    return [run["outcome"] for run in document["runs"]]


def suites(folder: Path) -> set[Path]:
    return {each.parent for each in folder.glob("*/suite.json")}


@pytest.fixture
def project(compose):
    """A compose project of the test's own, gone afterwards."""
    command = [*compose, "--project-name", f"windtunnel-test-{os.getpid()}"]
    yield command
    subprocess.run([*command, "down", "--timeout", "1"], capture_output=True, check=True)
    volumes = ["docker", "volume", "rm", "--force", f"{command[-1]}_control"]
    subprocess.run(volumes, capture_output=True, check=True)


def test_compose_up_runs_a_scenario_and_answers_with_its_exit_code(project):
    before = suites(REPOSITORY / "runs")
    done = subprocess.run(
        [*project, "up", "--no-color", "--exit-code-from", "harness"],
        env={**os.environ, "WINDTUNNEL_ARGS": SCENARIO},
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    (suite,) = suites(REPOSITORY / "runs") - before
    try:
        assert verdicts(suite) == ["PASS"]
        assert (suite / "report.html").stat().st_size > 0
        owners = {path.stat().st_uid for path in suite.rglob("*")}
        assert owners == {(REPOSITORY / "compose.yaml").stat().st_uid}
    finally:
        shutil.rmtree(suite)


def test_wrong_arguments_reach_the_exit_code(project):
    done = subprocess.run(
        [*project, "up", "--no-color", "--exit-code-from", "harness"],
        env={**os.environ, "WINDTUNNEL_ARGS": "no/such-scenario"},
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 64, done.stdout[-4000:] + done.stderr[-2000:]
    assert "no/such-scenario" in done.stdout + done.stderr


def test_harness_on_the_machine_runs_a_scenario_in_containers(image, tmp_path):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "harness", "run", SCENARIO),
            *("--fidelity", "compose", "--out", str(tmp_path)),
        ],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    (suite,) = suites(tmp_path)
    assert verdicts(suite) == ["PASS"]
