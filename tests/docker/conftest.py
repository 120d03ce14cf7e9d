"""What tests in containers need; where it is missing they are left out, and the reason is named."""

import shutil
import subprocess

import pytest

from harness.orchestrate.compose_file import REPOSITORY
from harness.orchestrate.lab import LabError

BUILD_TIMEOUT_S = 900


@pytest.fixture(scope="session")
def image():
    """The image of every container, built if need be."""
    from harness.orchestrate import engine

    try:
        engine.connect().close()
    except LabError as error:
        pytest.skip(str(error))
    if shutil.which("docker") is None:
        pytest.skip("the program `docker` that builds the image is not installed")
    built = subprocess.run(
        [engine.BUILD_SCRIPT], capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False
    )
    assert built.returncode == 0, built.stderr
    return "windtunnel:local"


@pytest.fixture(scope="session")
def compose(image):
    """The `docker compose` command of this clone."""
    command = ["docker", "compose", "--project-directory", str(REPOSITORY)]
    if subprocess.run([*command, "version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("the docker compose plugin is not installed")
    return command
