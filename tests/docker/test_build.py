"""Builds of images wait for each other, since they share the folder of wheels."""

import fcntl
import subprocess

import pytest

from windtunnel.harness.installation import ROOT as REPOSITORY

pytestmark = pytest.mark.docker


@pytest.mark.usefixtures("image")
def test_a_build_waits_for_another_build():
    (REPOSITORY / "build").mkdir(exist_ok=True)
    build = [str(REPOSITORY / "docker" / "build.sh")]
    with (REPOSITORY / "build" / "image.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with subprocess.Popen(build) as running:
            with pytest.raises(subprocess.TimeoutExpired):
                running.wait(2)
            fcntl.flock(lock, fcntl.LOCK_UN)
            assert running.wait(600) == 0
