"""Containers of testcontainers, and services of a compose file, on the hosts of a lab."""

from pathlib import Path

import pytest
import yaml
from testcontainers.compose import DockerCompose
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from tests.docker import test_applications_in_containers as applications
from windtunnel.harness.installation import ROOT as REPOSITORY
from windtunnel.harness.lab import LabError, open_lab
from windtunnel.harness.orchestrate.labs import image_kernels, privileges

pytestmark = [
    pytest.mark.docker,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(privileges.missing()), reason="files of containers are root's"),
]
CHANNEL, STREAM = applications.CHANNEL, applications.STREAM
MOUNTS = {
    str(REPOSITORY): "/windtunnel",
    image_kernels.volume_name(): image_kernels.KERNELS_IN_CONTAINER,
}


def described(image: str, program: str, channel: str) -> DockerContainer:
    """Return a container like that of a user's test."""
    container = DockerContainer(image).with_env("CHANNEL", channel)
    program = program.replace("sys.argv[1]", "__import__('os').environ['CHANNEL']")
    for source, target in MOUNTS.items():
        container.with_volume_mapping(source, target, "ro")
    return container.with_command(["python", "-c", program])


def test_containers_of_a_test_exchange_a_stream(
    image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The reaper needs an image from a registry.
    monkeypatch.setattr(testcontainers_config, "ryuk_disabled", True)
    with open_lab(fidelity="compose", loss="1%", observe=[STREAM], out=tmp_path / "runs") as lab:
        reader = lab.place("b", described(image, applications.READER, CHANNEL))
        publisher = lab.place("a", described(image, applications.PUBLISHER, CHANNEL))
        with pytest.raises(LabError, match="expected no ports"):
            lab.place("a", DockerContainer(image).with_exposed_ports(80))
        with reader, publisher:
            for each in (publisher, reader):
                assert each.get_wrapped_container().wait(timeout=120)["StatusCode"] == 0
            got = reader.get_logs()[0].decode()
        assert got.count("WT GOT") == 300
    found = {each["name"]: each for each in lab.verdict.checks}
    assert found["observed_data_arrived"]["outcome"] == "PASS", found["observed_data_arrived"]


@pytest.mark.full
def test_services_of_a_compose_file_are_placed_on_hosts(
    image: str, compose: list[str], tmp_path: Path
) -> None:
    service = {"image": image, "volumes": [f"{a}:{b}:ro" for a, b in MOUNTS.items()]}
    publisher = applications.PUBLISHER.replace(
        "sys.argv[1]", "'aeron:udp?endpoint=' + __import__('os').environ['WT_ADDRESS_B'] + ':24325'"
    )
    mine = {
        "services": {
            "publisher": {**service, "command": ["python", "-c", publisher], "ports": ["80"]}
        },
        "volumes": {image_kernels.volume_name(): {"external": True}},
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(mine))
    with open_lab(fidelity="compose", observe=[STREAM], out=tmp_path / "runs") as lab:
        reader = applications.READER.replace("sys.argv[1]", "__import__('os').environ['CHANNEL']")
        started = lab.start(
            "b", ["python", "-c", reader], env={"CHANNEL": CHANNEL}, ready="ready", name="reader"
        )
        placed = lab.compose_file({"publisher": "a"}, tmp_path / "placed.yaml")
        names = ["mine.yaml", placed.name]
        with DockerCompose(tmp_path, compose_file_name=names, wait=False):
            started.exited(within=120)
    found = {each["name"]: each for each in lab.verdict.checks}
    assert found["observed_data_arrived"]["outcome"] == "PASS", found["observed_data_arrived"]
