"""compose.yaml describes the containers, and the lab supports all of its keys."""

import copy

import pytest

from windtunnel.harness.orchestrate.lab import MID, LabError
from windtunnel.harness.orchestrate.labs import compose_file
from windtunnel.harness.orchestrate.labs.compose_file import Mount

GIB = 1 << 30


@pytest.fixture
def document():
    return compose_file.read()


def test_a_place_may_set_up_networks_and_nothing_else(document):
    plan = compose_file.container_spec(document, "a")
    assert plan.image == "windtunnel:local"
    assert plan.cap_add == ("NET_ADMIN", "NET_RAW")
    assert plan.sysctls == {"net.ipv4.ip_forward": "0"}
    assert plan.shm_size_bytes == GIB


def test_hosts_and_the_middlebox_are_equal(document):
    assert compose_file.container_spec(document, "a") == compose_file.container_spec(document, MID)
    services = document["services"]
    for place, service in (("a", "host-a"), ("b", "host-b"), (MID, "middlebox")):
        assert services[service]["command"] == compose_file.container_spec(document, place).command(
            place
        )


def test_code_is_mounted_read_only_and_the_folder_of_runs_is_writable(document):
    assert compose_file.container_spec(document, "b").mounts == (
        Mount(".", "/windtunnel", read_only=True),
        Mount("./runs", "/windtunnel/runs"),
        Mount("control", "/control"),
        Mount("windtunnel-kernels", "/kernels"),
    )


def test_harness_has_neither_network_nor_capabilities(document):
    harness = document["services"]["harness"]
    assert harness["network_mode"] == "none"
    assert not {"cap_add", "privileged", "networks"} & set(harness)
    assert "/var/run/docker.sock" not in str(document)


def test_networks_have_room_for_any_frame(document):
    assert compose_file.network_options(document) == {"com.docker.network.driver.mtu": "65535"}


def test_only_the_kernel_cache_is_shared_between_labs(document):
    assert compose_file.shared_volumes(document) == {
        "windtunnel-kernels": {
            "com.docker.compose.project": "windtunnel",
            "com.docker.compose.volume": "kernels",
        }
    }


def test_a_key_that_the_lab_does_not_support_is_refused(document):
    changed = copy.deepcopy(document)
    changed["services"]["host-a"]["privileged"] = True
    with pytest.raises(LabError, match=r"service host-a has the keys \['privileged'\]"):
        compose_file.container_spec(changed, "a")
    compose_file.container_spec(changed, MID)


@pytest.mark.parametrize("text", ["1", "gb", "1.5gb", "-1gb", ""])
def test_a_size_without_a_number_or_a_unit_is_refused(document, text):
    document["services"]["host-a"]["shm_size"] = text
    with pytest.raises(LabError, match="shm_size"):
        compose_file.container_spec(document, "a")


def test_a_missing_file_is_explained(tmp_path):
    with pytest.raises(LabError, match="containers need a clone"):
        compose_file.read(tmp_path / "compose.yaml")
