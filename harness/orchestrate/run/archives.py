"""Archives that run alongside the drivers: their requirements, command lines and settings, and the
line that they print when they are ready.

    driver of host b <--shared memory--> archive of host b --> hosts/b/archive
                                             ^
    recorder on host b ----- aeron:ipc ------'

An archive's directory is in the run folder, so its files are evidence without being copied. Clients
control an archive over shared memory, so the link carries only the scenario's traffic. Archives
that replicate from each other also use UDP.
"""

from __future__ import annotations

from collections.abc import Sequence

from windtunnel.harness.orchestrate.fidelity import NETNS
from windtunnel.harness.orchestrate.lab import Unsupported
from windtunnel.harness.orchestrate.labs import small_disk
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.scenario.resolved.archive_variables import archive_variables
from windtunnel.harness.scenario.schema.archive import Archive

READY = "archive ready"
"""Prefix of the line that an archive prints when it accepts clients."""

PROGRAM = ("-m", "windtunnel.driver.archive", "run")
"""Interpreter arguments that start Windtunnel's archive, which works with any driver. Other
archives are not supported."""

_THREADS = {
    # The threading mode is the same as the driver's, because hosts share one machine.
    "AERON_ARCHIVE_THREADING_MODE": "SHARED",
    "AERON_ARCHIVE_IDLE_STRATEGY": "sleep-ns",
}


_PACED_NAKS = {"AERON_NAK_UNICAST_DELAY": "10us"}


def require(spec: RunSpec) -> None:
    """Raise Unsupported if an archive of the scenario cannot be started."""
    for archive in spec.scenario.archives:
        if archive.disk_bytes is not None and spec.fidelity != NETNS:
            text = f"the archive on host {archive.host} needs a disk of limited size"
            raise Unsupported(f"{text}, which fidelity {spec.fidelity} cannot provide")


def command(python: str, *, archive: str, aeron: str, disk_bytes: int | None = None) -> list[str]:
    """Return the command line of an archive, given its directory and its driver's directory."""
    argv = [python, *PROGRAM, "--dir", archive, "--aeron-dir", aeron]
    return argv if disk_bytes is None else small_disk.command(python, archive, disk_bytes, argv)


def variables(archive: Archive, address: str = "") -> dict[str, str]:
    """Return an archive's environment variables. If an address is given, they include the archive's
    UDP channels.
    """
    return {**_THREADS, **archive_variables(archive, address)}


def driver_variables(all_archives: Sequence[Archive], host: str) -> dict[str, str]:
    """Return the environment variables that a driver needs if an archive runs on its host. Returns
    an empty dict if the host has no archive.

    An archive subscribes with channels that lack a stream's `nak-delay`. By default a NAK is
    repeated every 100 us, which on slow hosts causes a NAK storm that fills the relay and the
    sockets. With these variables a NAK is repeated every millisecond.
    """
    return _PACED_NAKS if any(each.host == host for each in all_archives) else {}


def is_ready_line(line: str) -> bool:
    """Return whether a line of an archive's log says that the archive is ready."""
    return line.startswith(READY)
