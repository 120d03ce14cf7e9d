"""The container lab: one container for each host and one for the middlebox, connected by bridges of
the container engine.

    [host a: eth0] ---- bridge a ---- [middlebox] ---- bridge b ---- [eth0 :host b]

    outside   the harness runs on the machine; the lab creates and removes containers and networks
    inside    the harness runs in a container of `docker compose up`, next to those of the places;
              it has no access to an engine, only to the agents' sockets

Links have the run's addresses (see `topology.addressing`), in addition to those assigned by the
engine. The engine's firewall has no rules for the run's addresses, and they are the same inside and
outside. The middlebox's kernel does not forward packets, so every packet passes through the relay.
"""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from windtunnel.driver.kernels.sources import CACHE_VARIABLE
from windtunnel.harness.installation import COMPOSE_FILE, is_checkout
from windtunnel.harness.orchestrate.lab import (
    MID,
    ApplicationRequest,
    LabApplication,
    LabError,
    Neighbor,
)
from windtunnel.harness.orchestrate.labs import agent_link, compose_file
from windtunnel.harness.orchestrate.labs.agent_link import AgentLink, AgentProcess
from windtunnel.harness.orchestrate.labs.compose_file import RUNS_IN_CONTAINER
from windtunnel.harness.orchestrate.labs.host_agent import CONTROL_VARIABLE
from windtunnel.harness.orchestrate.precompile import precompile
from windtunnel.harness.orchestrate.teardown import clean
from windtunnel.harness.orchestrate.teardown.state import LabState
from windtunnel.harness.topology import addressing
from windtunnel.harness.topology.model import Host, Topology

INSIDE_VARIABLE = "WINDTUNNEL_INSIDE"
"""Environment variable that compose.yaml sets in the harness container."""

PYTHON = "python"
SHARED_MEMORY = "/dev/shm/windtunnel"
CONNECT_TIMEOUT_S = 60.0

Subnets = list[tuple[str, ipaddress.IPv4Network]]


class Containers(Protocol):
    """The containers of a lab, which can be started and removed."""

    def start(self) -> Path:
        """Start all containers. Returns the folder that contains their agents' sockets."""

    def start_application(
        self, name: str, place: str, request: ApplicationRequest
    ) -> LabApplication:
        """Start an application in a container that shares network and memory of a host's."""

    def build_image(self, root: Path, folder: str, log: Path) -> str:
        """Build an image from a folder below `root`. Returns its name."""

    def neighbor(self, place: str) -> Neighbor:
        """Return the container of a place."""

    def outside(self, place: str, directory: str) -> AbstractContextManager[Path]:
        """Open a directory of a container, and yield its path on this machine."""

    def remove(self) -> None:
        """Remove everything that `start` created. Can be called repeatedly."""


class ComposeContainers:
    """Containers that `docker compose up` has started. They outlive the lab."""

    def start(self) -> Path:
        return Path(os.environ[CONTROL_VARIABLE])

    def start_application(
        self, name: str, place: str, request: ApplicationRequest
    ) -> LabApplication:
        text = "applications need a container engine, to which `docker compose up` has no access: "
        raise LabError(f"{text}use `windtunnel run --fidelity compose` outside the containers")

    def build_image(self, root: Path, folder: str, log: Path) -> str:
        raise LabError("images are built by an engine, to which `docker compose up` has no access")

    def neighbor(self, place: str) -> Neighbor:
        raise LabError(f"{place}: a lab of `docker compose up` does not support other containers")

    def outside(self, place: str, directory: str) -> AbstractContextManager[Path]:
        raise LabError(f"{place}: files of other containers cannot be read in a container")

    def remove(self) -> None:
        pass


def is_inside() -> bool:
    """Return whether the harness runs in a container that `docker compose up` started."""
    return os.environ.get(INSIDE_VARIABLE, "") not in ("", "0")


def require() -> None:
    """Compile the kernels for containers. Raises LabError if this machine cannot run containers."""
    if not is_checkout():
        raise LabError(
            f"fidelity compose needs a checkout of Windtunnel, as {COMPOSE_FILE} is not part of an "
            f"installed wheel: run from a clone, or use --fidelity netns or sim"
        )
    if is_inside():
        precompile.compile_all(Path(os.environ[CACHE_VARIABLE]))
    else:
        from windtunnel.harness.orchestrate.labs import image_kernels

        image_kernels.compile_in_volume()


def require_hosts(hosts: Sequence[str]) -> None:
    """Raise LabError if the harness runs in a container of `docker compose up`, and `docker compose
    up` does not start all of these hosts.
    """
    if not is_inside():
        return
    existing = compose_file.hosts(compose_file.read())
    others = [host for host in hosts if host not in existing]
    if others:
        raise LabError(
            f"`docker compose up` starts only the hosts {', '.join(existing)}, but the scenario "
            f"also has {', '.join(others)}: run this scenario outside the containers "
            "with `windtunnel run --fidelity compose`"
        )


def remove_leftovers() -> list[str]:
    """Remove the containers and networks of harnesses that have died. Returns one line for each
    removal.
    """
    if is_inside():
        return []
    try:
        from windtunnel.harness.orchestrate.labs import engine
    except ImportError:
        return []
    return engine.remove_leftovers()


class ComposeLab:
    """A lab of containers. Implements `Lab`."""

    name = "compose"

    def __init__(self, topology: Topology, records: Path, runs: Path) -> None:
        self.topology = topology
        self._records = records
        self._runs = runs.resolve()
        self.state = LabState(token=topology.token, run_id=topology.run_id, kind=self.name)
        self._links: dict[str, AgentLink] = {}
        self._interfaces: dict[str, str] = {}
        self._containers = self._make_containers()

    def _make_containers(self) -> Containers:
        if is_inside():
            return ComposeContainers()
        from windtunnel.harness.orchestrate.labs.ephemeral_containers import EphemeralContainers

        return EphemeralContainers(self.state, self._records, self._places, self._runs)

    @property
    def _places(self) -> tuple[str, ...]:
        return (*(host.name for host in self.topology.hosts), MID)

    def up(self) -> None:
        require_hosts([host.name for host in self.topology.hosts])
        try:
            self.state.write(self._records)
            control = self._containers.start()
            for place in self._places:
                self._links[place] = agent_link.connect(control, place, CONNECT_TIMEOUT_S)
            self._configure()
        except BaseException:
            self.down()
            raise

    def _configure(self) -> None:
        """Assign the addresses of the links to the containers' interfaces, and add the routes
        between the hosts.
        """
        middle = _subnets(self._links[MID])
        relay_commands: list[str] = []
        for host in self.topology.hosts:
            found = _subnets(self._links[host.name])
            if len(found) != 1:
                raise LabError(f"host {host.name}: expected one network, found {found}")
            ((interface, subnet),) = found
            facing = [name for name, its_subnet in middle if its_subnet == subnet]
            if len(facing) != 1:
                raise LabError(f"the middlebox has no interface on {subnet} of host {host.name}")
            self._interfaces[host.name] = interface
            self._interfaces[f"{MID}-{host.name}"] = facing[0]
            _run_shell(
                self._links[host.name],
                self._address(interface, host.address_with_prefix) + self._routes(host, interface),
            )
            relay_commands += self._address(facing[0], host.gateway_with_prefix)
            self._links[host.name].request("empty_directory", path=SHARED_MEMORY)
        _run_shell(self._links[MID], relay_commands)

    def _address(self, interface: str, address: str) -> list[str]:
        """Return the shell commands that set an interface's address and MTU and turn off
        segmentation offload.
        """
        return [
            f"ip address flush dev {interface} to {addressing.RANGE}",
            f"ip address add {address} dev {interface}",
            f"ip link set {interface} mtu {self.topology.mtu} gso_max_segs 1",
        ]

    def _routes(self, host: Host, interface: str) -> list[str]:
        return [
            f"ip route replace {other.subnet} via {host.gateway} dev {interface} src {host.address}"
            for other in self.topology.hosts
            if other is not host
        ]

    def address(self, host: str) -> str:
        return str(self.topology.host(host).address)

    def interface(self, host: str) -> str:
        return self._interfaces[host]

    def mid_interfaces(self) -> tuple[str, ...]:
        return tuple(self._interfaces[f"{MID}-{host}"] for host in self.topology.between)

    def python(self, place: str) -> str:
        return PYTHON

    def shared_memory(self, host: str) -> str:
        return SHARED_MEMORY

    def spawn(
        self,
        place: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        log: Path,
    ) -> AgentProcess:
        return self._link(place).spawn(
            f"{place}/{log.stem}", argv, env=env or {}, log=log, log_in_container=self.path(log)
        )

    def start_application(self, name: str, request: ApplicationRequest) -> LabApplication:
        place = name.partition("/")[0]
        return self._containers.start_application(name, place, request)

    def build_image(self, root: Path, folder: str, log: Path) -> str:
        return self._containers.build_image(root, folder, log)

    def neighbor(self, host: str) -> Neighbor:
        return self._containers.neighbor(host)

    def outside(self, host: str, directory: str) -> AbstractContextManager[Path]:
        return self._containers.outside(host, directory)

    def _link(self, place: str) -> AgentLink:
        if place not in self._links:
            raise LabError(f"no container for {place}: the lab is not up")
        return self._links[place]

    def path(self, path: Path) -> str:
        whole = path.resolve()
        if not whole.is_relative_to(self._runs):
            raise LabError(f"{path} is not below {self._runs}, so no container has access to it")
        return str(RUNS_IN_CONTAINER / whole.relative_to(self._runs))

    def read(self, place: str, path: str) -> bytes:
        return self._link(place).read(path)

    def down(self) -> None:
        try:
            self._restore_ownership()
        finally:
            for link in self._links.values():
                link.close()
            self._links.clear()
            self._containers.remove()
            clean.remove(self.state, self._records)

    def _restore_ownership(self) -> None:
        """Give files that root wrote in containers to the user of the harness."""
        if os.geteuid() != 0 and MID in self._links:
            owner = f"{os.geteuid()}:{os.getegid()}"
            self._links[MID].run(["chown", "-R", owner, str(RUNS_IN_CONTAINER)])


def _run_shell(link: AgentLink, commands: Sequence[str]) -> None:
    link.run(["sh", "-ec", "\n".join(commands)])


def _subnets(link: AgentLink) -> Subnets:
    """Return the interfaces of a container, each with the subnet that the engine assigned to it."""
    found = []
    for interface in json.loads(link.run(["ip", "-json", "-4", "address"])):
        if interface["ifname"] == "lo":
            continue
        for entry in interface["addr_info"]:
            address = ipaddress.IPv4Interface(f"{entry['local']}/{entry['prefixlen']}")
            if address.ip not in addressing.RANGE:
                found.append((interface["ifname"], address.network))
    return found
