"""The media driver of the image is started with testcontainers, as in a user's test."""

import pytest
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from windtunnel.harness.installation import ROOT as REPOSITORY
from windtunnel.harness.orchestrate.labs import image_kernels

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1800)]

AERON_DIR = "/dev/shm/aeron"
START_TIMEOUT_S = 60


@pytest.fixture
def driver(image, monkeypatch):
    """Start a container with a running driver."""
    # The reaper needs an image from a registry; the fixture removes its container itself.
    monkeypatch.setattr(testcontainers_config, "ryuk_disabled", True)
    container = (
        DockerContainer(image)
        .with_command(["windtunnel-driver", "--dir", AERON_DIR])
        .with_volume_mapping(str(REPOSITORY), "/windtunnel", "ro")
        .with_volume_mapping(image_kernels.volume_name(), image_kernels.KERNELS_IN_CONTAINER, "rw")
        .with_kwargs(shm_size="256m")
        .waiting_for(LogMessageWaitStrategy("driver ready").with_startup_timeout(START_TIMEOUT_S))
    )
    with container:
        yield container


def test_the_driver_runs_and_stops_cleanly(driver):
    code, output = driver.exec(["windtunnel", "stat", "--once", "--dir", AERON_DIR])
    assert code == 0, output
    assert b"Bytes sent" in output
    driver.get_wrapped_container().stop(timeout=10)
    assert driver.get_wrapped_container().wait()["StatusCode"] == 0
