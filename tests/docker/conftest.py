"""Fixtures of the tests in containers, which are skipped with a reason where one is missing."""

import shutil
import subprocess

import pytest

from windtunnel.harness.installation import ROOT as REPOSITORY
from windtunnel.harness.orchestrate.lab import LabError

BUILD_TIMEOUT_S = 900
"""Of one image; the first test that wants one waits for it within its own time."""


@pytest.fixture(scope="session")
def image():
    """Return the image of all containers, built if missing, with kernels in the kernel volume.

    An image is not rebuilt when kernels change: each container compiles the changed ones.
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
    """Return the image of Spark, which extends the other."""
    if not list(REPOSITORY.glob(".venv/lib/python*/site-packages/pyspark")):
        pytest.skip("Spark is not installed in .venv, so its image would be a download of 450 MB")
    build("spark")
    return "windtunnel-spark:local"


@pytest.fixture(scope="session")
def compose(image):
    """Return the `docker compose` command of this clone."""
    command = ["docker", "compose", "--project-directory", str(REPOSITORY)]
    if subprocess.run([*command, "version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("the docker compose plugin is not installed")
    return command
