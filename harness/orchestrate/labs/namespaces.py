"""The network namespace lab: real sockets and real time, without a container engine.

    wt-<token>-a                 wt-<token>-mid                 wt-<token>-b
    [eth0 .3] ---- veth ---- [to-a .2]   [to-b .2] ---- veth ---- [eth0 .3]

The kernel does not forward between the two pairs (ip_forward is 0 and IPv6 is off), so every packet
passes through the relay. Segmentation offload is off on all links, because the middlebox and the
captures must see each datagram as it was sent. Each host has a private in-memory directory. All
places share the file system, so a path is the same everywhere.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate import cancel
from windtunnel.harness.orchestrate.lab import MID
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.processes import fork_server_client, process
from windtunnel.harness.orchestrate.processes.fork_server_client import ForkedProcess
from windtunnel.harness.orchestrate.processes.process import CleanupWatchdog, LocalProcess
from windtunnel.harness.orchestrate.teardown import clean, cleanup_watchdog
from windtunnel.harness.orchestrate.teardown.state import NAME_PREFIX, LabState
from windtunnel.harness.topology.model import Topology

HOST_INTERFACE = "eth0"

_SETTINGS = """
for f in all default {interfaces}; do
  p=/proc/sys/net/ipv6/conf/$f/disable_ipv6; [ ! -e $p ] || echo 1 > $p
  p=/proc/sys/net/ipv6/conf/$f/accept_ra;    [ ! -e $p ] || echo 0 > $p
  p=/proc/sys/net/ipv4/conf/$f
  echo 0 > $p/rp_filter; echo 0 > $p/accept_redirects; echo 0 > $p/send_redirects
done
echo 0 > /proc/sys/net/ipv4/ip_forward
"""


def environment() -> dict[str, str]:
    """Return the environment of a lab's processes: the harness's variables except `AERON_*`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AERON_")}
    return {**kept, "PYTHONUNBUFFERED": "1"}


class NetnsLab:
    """A lab of network namespaces. Implements `Lab`."""

    name = "netns"

    def __init__(self, topology: Topology, labs: Path) -> None:
        self.topology = topology
        self._labs = labs
        self._hosts = {host.name: self._namespace(host.name) for host in topology.hosts}
        self._places = {**self._hosts, MID: self._namespace(MID)}
        self.state = LabState(
            token=topology.token,
            run_id=topology.run_id,
            kind=self.name,
            namespaces=tuple(self._places.values()),
        )
        self._processes: list[LocalProcess | ForkedProcess] = []
        self._watchdog: CleanupWatchdog | None = None

    def _namespace(self, place: str) -> str:
        return f"{NAME_PREFIX}{self.topology.token}-{place}"

    def up(self) -> None:
        privileges.require()
        fork_server_client.start_servers(environment(), ROOT)
        try:
            record = self.state.write(self._labs)
            self._watchdog = CleanupWatchdog(
                [sys.executable, "-m", cleanup_watchdog.__name__, str(record)],
                env=environment(),
                cwd=ROOT,
            )
            for host in self.topology.hosts:
                Path(self.shared_memory(host.name)).mkdir()
            process.run(["ip", "-batch", "-"], stdin=self._links())
            for place, namespace in self._places.items():
                self._configure(place, namespace)
        except BaseException:
            self.down()
            raise

    def _links(self) -> str:
        mtu = self.topology.mtu
        lines = [f"netns add {namespace}" for namespace in self._places.values()]
        for host, namespace in self._hosts.items():
            lines.append(
                f"link add {HOST_INTERFACE} netns {namespace} mtu {mtu} gso_max_segs 1 type veth "
                f"peer name to-{host} netns {self._places[MID]} mtu {mtu} gso_max_segs 1"
            )
        return "\n".join(lines) + "\n"

    def _configure(self, place: str, namespace: str) -> None:
        hosts = self.topology.hosts
        if place == MID:
            interfaces = {f"to-{host.name}": host.gateway_with_prefix for host in hosts}
            routes = []
        else:
            host = self.topology.host(place)
            interfaces = {HOST_INTERFACE: host.address_with_prefix}
            routes = [f"ip route add default via {host.gateway}"]
        lines = [_SETTINGS.format(interfaces=" ".join(interfaces)), "ip link set lo up"]
        for interface, address in interfaces.items():
            lines += [f"ip address add {address} dev {interface}", f"ip link set {interface} up"]
        process.run(
            ["nsenter", f"--net={clean.NAMESPACE_FOLDER / namespace}", "sh", "-e"],
            stdin="\n".join(lines + routes) + "\n",
        )

    def address(self, host: str) -> str:
        return str(self.topology.host(host).address)

    def interface(self, host: str) -> str:
        return HOST_INTERFACE

    def mid_interfaces(self) -> tuple[str, ...]:
        return tuple(f"to-{host}" for host in self.topology.between)

    def python(self, place: str) -> str:
        return sys.executable

    def shared_memory(self, host: str) -> str:
        return str(self.state.memory_directory() / host)

    def spawn(
        self,
        place: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        log: Path,
    ) -> LocalProcess | ForkedProcess:
        # Otherwise a process could be started that `down` does not end.
        with cancel.shielded():
            started = fork_server_client.start(
                f"{place}/{log.stem}",
                argv,
                command=[*self._enter(place), "setpriv", "--pdeathsig", "KILL", "--", *argv],
                common=environment(),
                env=env or {},
                cwd=ROOT,
                log=log,
                network=clean.NAMESPACE_FOLDER / self._places[place],
            )
            self._processes.append(started)
        return started

    def _enter(self, place: str) -> list[str]:
        return ["nsenter", f"--net={clean.NAMESPACE_FOLDER / self._places[place]}", "--"]

    def path(self, path: Path) -> str:
        return str(path.resolve())

    def read(self, place: str, path: str) -> bytes:
        return process.run([*self._enter(place), "cat", path])

    def down(self) -> None:
        for running in self._processes:
            running.kill()
        self._processes.clear()
        clean.remove(self.state, self._labs)
        if self._watchdog is not None:
            self._watchdog.release(cleanup_watchdog.DONE)
            self._watchdog = None
