"""The container lab end to end, relay to verdict, with the real Aeron C driver as the subject."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.netns import test_real_aeron
from tests.soundness import assert_sound
from windtunnel.harness.artifact.middlebox.decision import DROP, read_decisions
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.labs.compose_file import CODE_IN_CONTAINER, RUNS_IN_CONTAINER
from windtunnel.harness.orchestrate.subjects.subject import Pair, Subject
from windtunnel.harness.orchestrate.suite.runner import SuiteResult, run_suite

pyaeron = pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = [pytest.mark.docker, pytest.mark.peer, pytest.mark.timeout(1800)]

REAL_AERON = test_real_aeron.REAL_AERON
LIBRARIES = "libraries"
IMAGE_PYTHON = (3, 13)
SEED = 11

SCENARIO = test_real_aeron.SCENARIO.replace("[netns]", "[netns, compose]")


def make_run(
    folder: Path, fidelity: str, environment: dict[str, str]
) -> tuple[SuiteResult, RunDir]:
    file = folder / "small-loss.yaml"
    file.write_text(SCENARIO)
    subject = Subject("aeron-c", REAL_AERON.driver, REAL_AERON.workload, environment)
    result = run_suite(
        [file], fidelity=fidelity, out=folder / "runs", tested=Pair(subject, subject)
    )
    return result, RunDir(result.runs[0].run_dir)


@pytest.fixture(scope="module")
def in_containers(image, tmp_path_factory) -> tuple[SuiteResult, RunDir]:
    if sys.version_info[:2] != IMAGE_PYTHON:
        pytest.skip("the image has Python 3.13, and pyaeron is installed here for another one")
    folder = tmp_path_factory.mktemp("containers")
    package = Path(pyaeron.__file__)
    libraries = folder / "runs" / LIBRARIES
    libraries.mkdir(parents=True)
    if package.name == "__init__.py":
        shutil.copytree(package.parent, libraries / package.parent.name)
    else:
        shutil.copy(package, libraries)
    path = f"{CODE_IN_CONTAINER}:{RUNS_IN_CONTAINER / LIBRARIES}"
    return make_run(folder, "compose", {"PYTHONPATH": path})


def lost_first(folder: RunDir) -> list[int]:
    decisions = read_decisions(folder.decisions)
    lost = decisions[(decisions["action"] == DROP) & (decisions["attempt"] == 1)]
    return sorted(lost["position"].tolist())


def test_the_c_driver_passes_on_a_lossy_link(in_containers):
    result, folder = in_containers
    assert [run.seed for run in result.runs] == [SEED]
    assert result.exit_code == assert_sound(folder.path).exit_code
    manifest = Manifest.read(folder.manifest)
    assert manifest.complete
    assert manifest.errors == []


@pytest.mark.full
@pytest.mark.skipif(bool(privileges.missing()), reason="no right to make namespaces: run as root")
def test_the_same_frames_are_lost_as_between_namespaces(in_containers, tmp_path):
    result, in_namespaces = make_run(tmp_path, "netns", {})
    assert result.exit_code == assert_sound(in_namespaces.path).exit_code
    lost = lost_first(in_containers[1])
    assert len(lost) > 10
    assert lost == lost_first(in_namespaces)
