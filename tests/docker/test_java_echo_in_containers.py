"""The example in Java passes in containers, and injected bugs are reported."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.netns.test_java_echo import BUGS, EXAMPLE, WHY_NOT
from tests.stand_ins.planted_bugs import (
    EXECUTED,
    assert_named,
    assert_passes_in_containers,
    change_test,
    planted,
    run_example,
)
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.subjects import peers

pytestmark = [
    pytest.mark.docker,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it runs"),
    pytest.mark.skipif(bool(privileges.missing()), reason="files of containers are root's"),
]
SCENARIO = EXAMPLE / "java-echo-in-containers.yaml"
IMAGE = "windtunnel-test-java-echo:local"
IN_CONTAINERS = ("--windtunnel-fidelity", "compose")
JAVA_IMAGE = "windtunnel-test-java:local"
# The base image of the example is in a registry. This one has the JDK of this machine.
JAVA_DOCKERFILE = """
FROM windtunnel:local
COPY jdk /opt/jdk
ENV PATH=/opt/jdk/bin:/usr/bin:/bin
"""


@pytest.fixture(scope="module")
def java_image(image: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("java")
    home = Path(shutil.which("javac") or "").resolve().parents[1]
    unneeded = shutil.ignore_patterns("src.zip", "jmods", "demo", "man", "docs")
    # Parts of a JDK may be links to folders that an image does not have.
    shutil.copytree(home, folder / "jdk", ignore=unneeded, ignore_dangling_symlinks=True)
    (folder / "Dockerfile").write_text(JAVA_DOCKERFILE)
    docker_build(folder, JAVA_IMAGE)
    shutil.rmtree(folder)
    return JAVA_IMAGE


def docker_build(folder: Path, image: str, *options: str) -> None:
    command = ["docker", "build", "--quiet", *options, "--tag", image, str(folder)]
    subprocess.run(command, check=True, capture_output=True)


def test_the_example_runs_in_containers(java_image: str, tmp_path: Path) -> None:
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("runs", "__pycache__"))
    shutil.copy(os.environ[peers.JAR_VARIABLE], folder / "aeron-all.jar")
    docker_build(folder, IMAGE, "--build-arg", f"JAVA_IMAGE={java_image}")
    file = tmp_path / "echo.yaml"
    file.write_text(SCENARIO.read_text().replace("image: java-echo", f"image: {IMAGE}"))
    assert_passes_in_containers(file, tmp_path / "runs")


@pytest.mark.full
@pytest.mark.parametrize("name", BUGS)
def test_an_injected_bug_fails_in_containers_and_is_reported(
    java_image: str, tmp_path: Path, name: str
) -> None:
    bug, out = BUGS[name], tmp_path / "runs"
    copy = planted(EXAMPLE, bug, tmp_path)
    shutil.copy(os.environ[peers.JAR_VARIABLE], copy / "aeron-all.jar")
    jar = '"CLASSPATH": "/scenario/aeron-all.jar"'
    changes = {
        EXECUTED: f'"/work/executed", {jar}',
        "env=env": f"env=env, image={java_image!r}",
        '"Service.java"': '"/scenario/Service.java"',
        '"Client.java"': '"/scenario/Client.java"',
    }
    change_test(copy, changes)
    done = run_example(copy, out, "-k", bug.test, *IN_CONTAINERS, limit_s=900)
    assert_named(done, out, bug)
