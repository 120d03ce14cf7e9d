"""What tests in containers need; where it is missing they are left out, and the reason is named."""

import shutil
import subprocess

import pytest

from windtunnel.harness.installation import ROOT as REPOSITORY
from windtunnel.harness.orchestrate.lab import LabError

BUILD_TIMEOUT_S = 900
"""Of one image; the first test that wants one waits for it within its own time."""


@pytest.fixture(scope="session")
def image():
    """The image of every container, built if need be, and its kernels in the kernel volume.

    An image is not built anew when kernels change. Each container would compile the changed ones.
    """
    from windtunnel.harness.orchestrate.labs import engine, image_kernels

    try:
        engine.connect().close()
    except LabError as error:
        pytest.skip(str(error))
    if shutil.which("docker") is None:
        pytest.skip("the program `docker` that builds the image is not installed")
    build()
    image_kernels.compile_in_volume()
    return "windtunnel:local"


def build(*what: str) -> None:
    """Build an image that is missing."""
    from windtunnel.harness.orchestrate.labs import engine

    built = subprocess.run(
        [engine.BUILD_SCRIPT, *what],
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    assert built.returncode == 0, built.stderr


@pytest.fixture(scope="session")
def spark_image(image):
    """The image of Spark, on top of the other."""
    if not list(REPOSITORY.glob(".venv/lib/python*/site-packages/pyspark")):
        pytest.skip("Spark is not installed in .venv, so its image would be a download of 450 MB")
    build("spark")
    return "windtunnel-spark:local"


@pytest.fixture(scope="session")
def compose(image):
    """The `docker compose` command of this clone."""
    command = ["docker", "compose", "--project-directory", str(REPOSITORY)]
    if subprocess.run([*command, "version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("the docker compose plugin is not installed")
    return command
