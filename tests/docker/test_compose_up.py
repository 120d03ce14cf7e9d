"""The main job in containers is started by compose, and by the harness on the machine."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.soundness import assert_sound
from windtunnel.harness.artifact.documents import read_document
from windtunnel.harness.artifact.run.suite import Suite
from windtunnel.harness.artifact.suite_dir import SuiteDir
from windtunnel.harness.installation import ROOT as REPOSITORY

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1800)]

RUN_TIMEOUT_S = 600
SCENARIOS = ["matrix/loss", pytest.param("loss/reliable-2pct", marks=pytest.mark.full)]
"""The main job with a stream of 2 MiB, and of 128 MiB as the default of `docker compose up`."""


def check(done: subprocess.CompletedProcess[str], found: set[Path]) -> Path:
    """Check that the only run is sound, and that verdict, suite and exit code have its outcome."""
    assert len(found) == 1, done.stdout[-4000:] + done.stderr[-2000:]
    (suite,) = found
    (run,) = SuiteDir(suite).runs()
    reported = read_document(run.verdict)["outcome"]
    verdict = assert_sound(run.path)
    (listed,) = Suite.read(suite / "suite.json").runs
    assert reported == listed.outcome == verdict.outcome
    assert done.returncode == verdict.exit_code
    return suite


def suites(folder: Path) -> set[Path]:
    return {each.parent for each in folder.glob("*/suite.json")}


@pytest.fixture
def project(compose):
    """Return the command of a compose project, which is removed afterwards."""
    command = [*compose, "--project-name", f"windtunnel-test-{os.getpid()}"]
    yield command
    subprocess.run([*command, "down", "--timeout", "1"], capture_output=True, check=True)
    volumes = ["docker", "volume", "rm", "--force", f"{command[-1]}_control"]
    subprocess.run(volumes, capture_output=True, check=True)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_compose_up_runs_a_scenario_and_returns_its_exit_code(project, scenario):
    before = suites(REPOSITORY / "runs")
    done = subprocess.run(
        [*project, "up", "--no-color", "--exit-code-from", "harness"],
        env={**os.environ, "WINDTUNNEL_ARGS": scenario},
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    created = suites(REPOSITORY / "runs") - before
    try:
        suite = check(done, created)
        assert (suite / "report.html").stat().st_size > 0
        owners = {path.stat().st_uid for path in suite.rglob("*")}
        assert owners == {(REPOSITORY / "compose.yaml").stat().st_uid}
    finally:
        for each in created:
            shutil.rmtree(each)


@pytest.mark.full
def test_wrong_arguments_set_the_exit_code(project):
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


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_harness_on_the_machine_runs_a_scenario_in_containers(image, scenario, tmp_path):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "windtunnel.harness", "run", scenario),
            *("--fidelity", "compose", "--seeds", "1", "--out", str(tmp_path)),
        ],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    check(done, suites(tmp_path))
