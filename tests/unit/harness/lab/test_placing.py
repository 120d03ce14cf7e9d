"""Containers of testcontainers or of a compose file, placed on a host."""

from typing import Any

import pytest
import yaml

from windtunnel.harness.lab.errors import LabError
from windtunnel.harness.lab.placing import Place, compose_text, place

WHERE = Place(
    host="b",
    container="wt-1234-b",
    variables={"AERON_DIR": "/dev/shm/windtunnel/aeron"},
    labels={"windtunnel.owner": '{"a": "$x"}'},
    addresses={"a": "10.0.0.3", "b-2": "10.0.0.19"},
)


class Container:
    """A container description like that of testcontainers."""

    def __init__(self, **kwargs: Any) -> None:
        self.env = {"FEED": "aeron:udp?endpoint=${a}:24325", "HOME": "${home}"}
        self.ports: dict[str, Any] = {}
        self._network: object = None
        self._kwargs = kwargs

    def with_kwargs(self, **kwargs: Any) -> None:
        self._kwargs = kwargs


def test_a_container_shares_network_and_memory_of_its_host() -> None:
    container = Container(shm_size="1g", user="5:5", labels={"mine": "1"})
    assert place(container, WHERE) is container
    found = container._kwargs
    assert found["network_mode"] == found["ipc_mode"] == "container:wt-1234-b"
    assert (found["user"], found["shm_size"]) == ("5:5", "1g")
    assert found["labels"] == {"mine": "1", **WHERE.labels}
    assert found["cap_drop"] == ["ALL"]
    assert container.env == {
        "AERON_DIR": "/dev/shm/windtunnel/aeron",
        "FEED": "aeron:udp?endpoint=10.0.0.3:24325",
        "HOME": "${home}",
    }


def test_a_container_with_a_network_of_its_own_is_refused() -> None:
    container = Container()
    container.ports = {"80": None}
    with pytest.raises(LabError, match="has the network of host b: expected no ports"):
        place(container, WHERE)
    container = Container()
    container._network = object()
    with pytest.raises(LabError, match="no network of its own"):
        place(container, WHERE)


def test_services_of_a_compose_file_lose_their_networks() -> None:
    text = compose_text({"feed": WHERE})
    assert text.count("networks: !reset null") == text.count("ports: !reset null") == 1
    found = yaml.safe_load(text.replace("!reset ", ""))["services"]["feed"]
    assert found["network_mode"] == found["ipc"] == "container:wt-1234-b"
    assert found["environment"]["WT_ADDRESS_B_2"] == "10.0.0.19"
    # Compose would replace a single dollar sign.
    assert found["labels"]["windtunnel.owner"] == '{"a": "$$x"}'
