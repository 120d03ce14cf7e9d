"""What any lab can do, whether it is made of namespaces or of containers.

    place          eth0            mid             eth0          place
    "a"  [driver, workloads] ---- [relay] ---- [driver, workloads]  "b"

A place is a host of the scenario or `MID`, where the middlebox runs. A lab knows how to start a
process in a place and what a path of the run folder is called there; it refuses to know what the
processes do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

MID = "mid"
"""The place of the middlebox."""


class LabError(Exception):
    """The lab cannot be built or has failed: the machine's fault, never the subject's."""


class LabProcess(Protocol):
    """A process in a place. Its stdout and stderr go to the log it was spawned with."""

    name: str
    """Unique within a run, `<place>/<what>`; the key of its exit facts in the manifest."""

    def poll(self) -> int | None:
        """Return the exit code (minus the signal's number if a signal ended it), None if alive."""

    def wait(self, timeout_s: float) -> int | None:
        """Wait for the end and return the exit code, or None when the time is over first."""

    def tell(self, number: int) -> None:
        """Send it a signal that it knows how to take; no error if it has ended already."""

    def terminate(self) -> None:
        """Ask it to end (SIGTERM to the process alone); no error if it has ended already."""

    def kill(self) -> None:
        """End it and all its children (SIGKILL to its process group) and reap it."""

    def tail(self, lines: int = 5) -> str:
        """Return the last lines of its log, for an error message."""


class Lab(Protocol):
    """Hosts, a middlebox between them, and the means to run processes there.

    Order of use: `up`, then anything else, then `down`. `down` may be called at any time, in any
    state and more than once.
    """

    name: str
    """The fidelity: `netns`, `compose` or `sim`."""

    def up(self) -> None:
        """Build everything; on failure raise LabError and leave nothing behind."""

    def address(self, host: str) -> str:
        """Return the IPv4 address of the host's interface; known before `up`."""

    def interface(self, host: str) -> str:
        """Return the name of the host's interface towards the middlebox."""

    def mid_interfaces(self) -> tuple[str, ...]:
        """Return the middlebox's interfaces towards the hosts, in the order of the case's hosts."""

    def python(self, place: str) -> str:
        """Return the Python interpreter to name as argv[0] of our own programs in this place."""

    def shared_memory(self, host: str) -> str:
        """Return a private directory in memory for the host's driver, as the host sees it."""

    def spawn(
        self,
        place: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        log: Path,
    ) -> LabProcess:
        """Start argv in a place.

        The process finds our packages importable, leads its own process group and dies with the
        harness. `env` is added to the lab's own variables. `log` is a path of the run folder as
        the harness sees it; stdout and stderr are appended to it unbuffered by us.
        """

    def path(self, path: Path) -> str:
        """Return what a path of the run folder (or of the payload) is called in every place."""

    def read(self, place: str, path: str) -> bytes:
        """Return a small file as the place sees it, such as /proc/net/snmp."""

    def down(self) -> None:
        """Kill every process, remove everything `up` made, and prove that nothing is left.

        Idempotent. Raises LabError naming what could not be removed.
        """
