"""The interface of a lab, which hosts, a middlebox and their processes run in.

    place          eth0            mid             eth0          place
    "a"  [driver, workloads] ---- [relay] ---- [driver, workloads]  "b"

A place is a host of the scenario or `MID`, where the middlebox runs. A lab starts processes in a
place and translates paths of the run folder into paths of that place. It does not know what the
processes do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

MID = "mid"
"""The place of the middlebox."""


class LabError(Exception):
    """The lab cannot be built or has failed, through no fault of the driver under test."""


class Unsupported(Exception):
    """The lab or the driver under test cannot do what the scenario requires."""


class LabProcess(Protocol):
    """A process in a place, whose stdout and stderr are appended to its log."""

    name: str
    """Unique within a run, `<place>/<role>`; the key of its exit facts in the manifest."""

    def poll(self) -> int | None:
        """Return the exit code (-N if signal N ended the process), or None if it is alive."""

    def wait(self, timeout_s: float) -> int | None:
        """Wait for the end and return the exit code, or None on timeout."""

    def send_signal(self, number: int) -> None:
        """Send a signal to the process alone; no error if it has ended already."""

    def terminate(self) -> None:
        """Send SIGTERM to the process alone; no error if it has ended already."""

    def kill(self) -> None:
        """Send SIGKILL to the process group and reap the process."""

    def tail(self, lines: int = 5) -> str:
        """Return the last lines of its log, for an error message."""


class Lab(Protocol):
    """Hosts and a middlebox between them, in which processes can be run.

    Call `up` first and `down` last. `down` may be called at any time, in any state and repeatedly.
    """

    name: str
    """The fidelity: `netns`, `compose` or `sim`."""

    def up(self) -> None:
        """Build the lab; on failure raise LabError and leave nothing behind."""

    def address(self, host: str) -> str:
        """Return the IPv4 address of the host's interface; available before `up`."""

    def interface(self, host: str) -> str:
        """Return the name of the host's interface towards the middlebox."""

    def mid_interfaces(self) -> tuple[str, ...]:
        """Return the middlebox's interfaces towards the hosts, in the order of the case's hosts."""

    def python(self, place: str) -> str:
        """Return the Python interpreter for Windtunnel's own programs in this place."""

    def shared_memory(self, host: str) -> str:
        """Return the path, on the host, of a private directory in memory for its driver."""

    def spawn(
        self,
        place: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        log: Path,
    ) -> LabProcess:
        """Start argv in a place.

        Windtunnel's packages are importable in the process. It leads its own process group and
        dies with the harness. `env` is added to the lab's own variables. `log` is a path of the run
        folder on the harness's side; stdout and stderr are appended to it.
        """

    def path(self, path: Path) -> str:
        """Return the path, in every place, of a file in the run folder (or of the payload)."""

    def read(self, place: str, path: str) -> bytes:
        """Return the contents of a small file in a place, such as /proc/net/snmp."""

    def down(self) -> None:
        """Kill every process, remove everything that `up` created, and verify that nothing is left.

        Idempotent. Raises LabError that names what could not be removed.
        """
