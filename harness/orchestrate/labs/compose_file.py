"""Container specifications read from compose.yaml, for a lab that starts its own containers.

    compose.yaml --read--> ContainerSpec of a host and of the middlebox --> ComposeLab

`docker compose` reads the same file, so each container is described only once. A service key that
the lab does not support is an error, so that no setting is silently ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from windtunnel.harness.installation import COMPOSE_FILE
from windtunnel.harness.orchestrate.lab import MID, LabError

MIDDLEBOX_SERVICE = "middlebox"
HOST_PREFIX = "host-"
HOST_SERVICE = f"{HOST_PREFIX}a"
"""The service from which the specification of all hosts is read."""

CODE_IN_CONTAINER = Path("/windtunnel")
RUNS_IN_CONTAINER = CODE_IN_CONTAINER / "runs"
SCENARIO_IN_CONTAINER = "/scenario"
WORK_IN_CONTAINER = "/work"
"""Folders of an application in a container of its own."""
AGENT_MODULE = "windtunnel.harness.orchestrate.labs.host_agent"

# `build` and `stop_grace_period` are only for docker compose. The lab creates separate networks.
_SUPPORTED = {"image", "command", "cap_add", "sysctls", "shm_size", "volumes"}
_IGNORED = {"build", "networks", "stop_grace_period"}
_SHM_SIZE = re.compile(r"(\d+)([kmg])b?")
_SHM_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True)
class Mount:
    """A folder of the checkout (`./...`), the absolute path of another folder, or a named volume,
    with its mount point in a container.
    """

    source: str
    target: str
    read_only: bool = False

    @property
    def is_volume(self) -> bool:
        return "/" not in self.source


@dataclass(frozen=True)
class ContainerSpec:
    """The settings of a host's container or of the middlebox container."""

    image: str
    cap_add: tuple[str, ...]
    sysctls: dict[str, str]
    shm_size_bytes: int
    mounts: tuple[Mount, ...]

    def command(self, place: str) -> list[str]:
        return ["python", "-m", AGENT_MODULE, place]


def read(path: Path = COMPOSE_FILE) -> dict[str, Any]:
    """Read and parse compose.yaml."""
    try:
        document = yaml.safe_load(path.read_text())
    except FileNotFoundError as error:
        raise LabError(
            f"{path} does not exist: containers need a clone of the repository"
        ) from error
    assert isinstance(document, dict)
    return document


def container_spec(document: dict[str, Any], place: str) -> ContainerSpec:
    """Return the specification of a host's container or of the middlebox container."""
    name = MIDDLEBOX_SERVICE if place == MID else HOST_SERVICE
    service = document["services"][name]
    unknown = sorted(set(service) - _SUPPORTED - _IGNORED)
    if unknown:
        raise LabError(
            f"compose.yaml: service {name} has the keys {unknown}, which the lab does not support"
        )
    return ContainerSpec(
        image=service["image"],
        cap_add=tuple(service.get("cap_add", ())),
        sysctls={key: str(value) for key, value in service.get("sysctls", {}).items()},
        shm_size_bytes=_shm_size_bytes(service["shm_size"]),
        mounts=tuple(_mount(text, document.get("volumes", {})) for text in service["volumes"]),
    )


def hosts(document: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the hosts that `docker compose up` starts."""
    return tuple(
        name.removeprefix(HOST_PREFIX)
        for name in document["services"]
        if name.startswith(HOST_PREFIX)
    )


def network_options(document: dict[str, Any]) -> dict[str, str]:
    """Return the options of the network driver for a host's network."""
    networks = document["services"][HOST_SERVICE]["networks"]
    options = document["networks"][networks[0]]["driver_opts"]
    return {key: str(value) for key, value in options.items()}


def shared_volumes(document: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return the volumes that outlive a lab, with the labels that docker compose gives them."""
    project = document["name"]
    return {
        volume["name"]: {
            "com.docker.compose.project": project,
            "com.docker.compose.volume": key,
        }
        for key, volume in document["volumes"].items()
        if volume and "name" in volume
    }


def _shm_size_bytes(text: str) -> int:
    found = _SHM_SIZE.fullmatch(text)
    if found is None:
        raise LabError(f"compose.yaml: shm_size {text!r}: expected a number and a unit, as in 1gb")
    return int(found[1]) * _SHM_UNITS[found[2]]


def _mount(text: str, volumes: dict[str, Any]) -> Mount:
    source, target, *mode = text.split(":")
    if source in volumes:
        source = (volumes[source] or {}).get("name", source)
    return Mount(source, target, read_only=mode == ["ro"])
