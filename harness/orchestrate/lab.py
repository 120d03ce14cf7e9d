"""The interface of a lab: hosts, a middlebox between them, and the processes that run on them.

    place          eth0            mid             eth0          place
    "a"  [driver, workloads] ---- [relay] ---- [driver, workloads]  "b"

A place is a host of the scenario or `MID`, where the middlebox runs. A lab starts processes in a
place, and translates paths in the run folder to paths in that place. Other modules define what the
processes do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

MID = "mid"
"""The name of the place where the middlebox runs."""


class LabError(Exception):
    """Raised if a lab cannot be built or has failed. The driver under test is not at fault."""


class Unsupported(Exception):
    """Raised if the lab or the driver under test cannot do what the scenario requires."""


@dataclass(frozen=True)
class ApplicationRequest:
    """An application, or a driver, that a lab of containers starts in a container of its own."""

    image: str
    """The user's image, or an empty string for that of the harness."""
    command: tuple[str, ...]
    """The command, or nothing for that of the image."""
    env: Mapping[str, str]
    log: Path
    log_bytes_max: int
    work: Path | None = None
    """The application's own folder, or None if it has none. Nothing else of the run folder is
    visible to it.
    """
    scenario: Path | None = None
    """The folder of the scenario, which it can only read, or None if it does not see it."""
    working_dir: str = ""
    """The folder of its image in which it starts, or an empty string for that of the image."""
    starts_in_scenario: bool = False
    """Whether it starts in the folder of the scenario, instead of its own."""
    user: str = ""
    """Its user, and group, as numbers, or an empty string for root."""
    memory_bytes: int = 0
    milli_cpus: int = 0
    """Limits, or 0 for none."""
    processes_max: int = 0
    """Maximum number of processes and threads, or 0 for the default of the lab."""


@dataclass(frozen=True)
class Neighbor:
    """The container of a host, for other containers that share its network and memory."""

    name: str
    labels: Mapping[str, str]
    """Labels of containers that are to be removed with the lab."""


class NotBuilt(Exception):
    """Raised if the image of an application cannot be built from what the user gives."""


class LabProcess(Protocol):
    """A process in a lab. Its stdout and stderr are appended to a log file."""

    name: str
    """Name of the process, `<place>/<role>`, which is unique in a run. It is the key of the
    process's exit facts in the manifest."""

    def poll(self) -> int | None:
        """Return the exit code (-N if signal N ended it), or None if the process is alive."""

    def wait(self, timeout_s: float) -> int | None:
        """Wait until the process ends, and return its exit code, or None on timeout."""

    def send_signal(self, number: int) -> None:
        """Send a signal to the process but not to its group, unless the process has ended."""

    def terminate(self) -> None:
        """Send SIGTERM to the process but not to its group, unless the process has ended."""

    def kill(self) -> None:
        """Send SIGKILL to the process group and reap the process."""

    def tail(self, lines: int = 5) -> str:
        """Return the last lines of the process's log, for an error message."""


class LabApplication(LabProcess, Protocol):
    """An application, or a driver, in a container of its own."""

    def problem(self) -> tuple[str, str]:
        """Return why the application was killed or could not be started, as a keyword and a text.
        Both are empty if it did neither.
        """


class Lab(Protocol):
    """A lab: hosts and a middlebox between them. Processes can run on the hosts and on the
    middlebox.

    Call `up` first and `down` last. `down` may be called at any time, in any state and repeatedly.
    """

    name: str
    """The fidelity of the lab: `netns`, `compose` or `sim`."""

    def up(self) -> None:
        """Build the lab. On failure, raise LabError and leave nothing behind."""

    def address(self, host: str) -> str:
        """Return the IPv4 address of a host's interface. The address is available before `up`."""

    def interface(self, host: str) -> str:
        """Return the name of the host's interface that is connected to the middlebox."""

    def mid_interfaces(self) -> tuple[str, ...]:
        """Return the middlebox's interfaces to the hosts, in the order of the scenario's hosts."""

    def python(self, place: str) -> str:
        """Return the path of the Python interpreter that runs Windtunnel's programs on a host."""

    def shared_memory(self, host: str) -> str:
        """Return the path of a private in-memory directory for a host's driver."""

    def spawn(
        self,
        place: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        log: Path,
    ) -> LabProcess:
        """Start a process on a host or on the middlebox.

        The process can import Windtunnel's packages. It leads a process group and dies with the
        harness. `env` is added to the lab's environment variables. stdout and stderr are appended
        to `log`, which is a path in the run folder as the harness sees it.
        """

    def path(self, path: Path) -> str:
        """Return the path of the payload or of a file in the run folder, as it is seen on all
        hosts.
        """

    def read(self, place: str, path: str) -> bytes:
        """Return the contents of a small file on a host, such as /proc/net/snmp."""

    def down(self) -> None:
        """Kill all processes, remove everything that `up` created, and verify that nothing is left.

        Can be called repeatedly. The LabError that is raised on failure names what was not removed.
        """


@runtime_checkable
class ContainerLab(Protocol):
    """A lab whose hosts are containers, next to which it starts applications and drivers."""

    def start_application(self, name: str, request: ApplicationRequest) -> LabApplication:
        """Start an application, or a driver, in a container of its own on the host that its name
        begins with, as in `b/application-feed`.
        """

    def build_image(self, root: Path, folder: str, log: Path) -> str:
        """Build an image from a folder below `root` that has a Dockerfile, and append the output to
        a log. Returns the image's name. The lab need not be up. Raises NotBuilt.
        """

    def neighbor(self, host: str) -> Neighbor:
        """Return the container of a host."""

    def outside(self, host: str, directory: str) -> AbstractContextManager[Path]:
        """Open a directory of a host for a `with` block, and yield its path on this machine.

        Raises UnsafeFileError if a component of the path is a symbolic link: a container controls
        its files. Raises FileNotFoundError if the directory does not exist, and LabError if it
        cannot be reached.
        """
