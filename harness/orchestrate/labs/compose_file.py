"""compose.yaml as the one description of a container, read for a lab that starts its own.

    compose.yaml --read--> Plan of a host, Plan of the middlebox --> ComposeLab

`docker compose` reads the same file by itself. Only the keys that a place of the lab may have are
understood; any other is refused, so that nothing written there is silently left out.
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
HOST_SERVICE = "host-a"
"""All hosts are alike: any of them shows what a host is."""

AGENT_MODULE = "windtunnel.harness.orchestrate.labs.host_agent"
MTU_OPTION = "com.docker.network.driver.mtu"

# `build` and `stop_grace_period` are for docker compose alone; networks are the lab's business.
_UNDERSTOOD = {"image", "command", "cap_add", "sysctls", "shm_size", "volumes"}
_IGNORED = {"build", "networks", "stop_grace_period"}
_SHM_SIZE = re.compile(r"(\d+)([kmg])b?")
_SHM_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True)
class Mount:
    """A folder of the clone (`./...`) or a named volume, and where a container finds it."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True)
class Plan:
    """What the container of a place is."""

    image: str
    cap_add: tuple[str, ...]
    sysctls: dict[str, str]
    shm_size_bytes: int
    mounts: tuple[Mount, ...]

    def command(self, place: str) -> list[str]:
        return ["python", "-m", AGENT_MODULE, place]


def read(path: Path = COMPOSE_FILE) -> dict[str, Any]:
    """Return compose.yaml as plain values."""
    try:
        document = yaml.safe_load(path.read_text())
    except FileNotFoundError as error:
        raise LabError(f"{path} is missing: containers need a clone of the repository") from error
    assert isinstance(document, dict)
    return document


def plan(document: dict[str, Any], place: str) -> Plan:
    """Return the plan of a place's container."""
    name = MIDDLEBOX_SERVICE if place == MID else HOST_SERVICE
    service = document["services"][name]
    unknown = sorted(set(service) - _UNDERSTOOD - _IGNORED)
    if unknown:
        raise LabError(f"compose.yaml: service {name} has {unknown}, which the lab cannot realise")
    return Plan(
        image=service["image"],
        cap_add=tuple(service.get("cap_add", ())),
        sysctls={key: str(value) for key, value in service.get("sysctls", {}).items()},
        shm_size_bytes=_shm_size_bytes(service["shm_size"]),
        mounts=tuple(_mount(text, document.get("volumes", {})) for text in service["volumes"]),
    )


def network_options(document: dict[str, Any]) -> dict[str, str]:
    """Return the engine's options for the network of a host."""
    networks = document["services"][HOST_SERVICE]["networks"]
    options = document["networks"][networks[0]]["driver_opts"]
    return {key: str(value) for key, value in options.items()}


def shared_volumes(document: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return the volumes that outlive a lab, with the labels by which compose knows its own."""
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
