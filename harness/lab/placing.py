"""Places containers that a program describes elsewhere on the hosts of a lab: containers of
testcontainers, and services of a compose file.

    description + {network and shared memory of the host's container, AERON_DIR} --> its own `start`

The program starts and ends them. The lab judges their observed streams, but not how they end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import yaml

from windtunnel.harness.lab.errors import LabError
from windtunnel.harness.scenario.applications.placeholder import fill_in

ROOT = "0:0"
"""The user of the drivers in containers. Only this user can use their files."""


class Described(Protocol):
    """What is used of `testcontainers.core.container.DockerContainer`."""

    env: dict[str, str]
    ports: dict[str, Any]

    def with_kwargs(self, **kwargs: Any) -> Any:
        """Replace the further arguments with which the container is created."""


RESET = "removed-by-windtunnel"
"""The value of a key that the compose file removes from a service."""
Container = TypeVar("Container", bound=Described)


@dataclass(frozen=True)
class Place:
    """What a container needs in order to be on a host of a lab."""

    host: str
    container: str
    """Name of the host's container."""
    variables: Mapping[str, str]
    labels: Mapping[str, str]
    """Labels by which the lab removes what was not removed when it is taken down."""
    addresses: Mapping[str, str]

    @property
    def mode(self) -> str:
        return f"container:{self.container}"

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of a container, with the addresses of hosts filled in."""
        filled = {name: fill_in(str(value), self.addresses) for name, value in given.items()}
        return {**self.variables, **filled}


def place(container: Container, where: Place) -> Container:
    """Change the description of a container, which has not been started, so that it starts on a
    host.
    """
    given: dict[str, Any] = dict(getattr(container, "_kwargs", {}))
    if container.ports or getattr(container, "_network", None) is not None:
        text = f"the container has the network of host {where.host}: expected no ports, "
        raise LabError(f"{text}and no network of its own")
    container.env = where.environment(container.env)
    container.with_kwargs(
        **{
            "user": ROOT,
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            **given,
            "labels": {**given.get("labels", {}), **where.labels},
            "network_mode": where.mode,
            "ipc_mode": where.mode,
        }
    )
    return container


def compose_text(places: Mapping[str, Place]) -> str:
    """Return a compose file that places services on hosts, to be used after the file that describes
    these services.
    """
    services = {
        service: {
            "network_mode": where.mode,
            "networks": RESET,
            "ports": RESET,
            "ipc": where.mode,
            "user": ROOT,
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges:true"],
            "environment": {**where.variables, **_named(where.addresses)},
            "labels": dict(where.labels),
        }
        for service, where in places.items()
    }
    # Compose replaces `$` in values, also in those of labels.
    text: str = yaml.safe_dump({"services": services}, sort_keys=False)
    return text.replace("$", "$$").replace(f": {RESET}\n", ": !reset null\n")


def _named(addresses: Mapping[str, str]) -> dict[str, str]:
    """Return variables with the addresses of hosts, since a compose file has no placeholders for
    them.
    """
    return {
        f"WT_ADDRESS_{host.upper().replace('-', '_')}": address
        for host, address in addresses.items()
    }
