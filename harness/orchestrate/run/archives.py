"""Archives beside the drivers of a run: who has one, its words, its settings, when it is ready.

    driver of host b <--shared memory--> archive of host b --> hosts/b/archive
                                             ^
    recorder on host b ----- aeron:ipc ------'

An archive keeps its directory in the run folder, so what it wrote is evidence without being copied.
It is asked over shared memory, so that nothing of it crosses the link but what the scenario orders;
only where archives copy from each other they speak over UDP, too. Refuses to know what it is asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from windtunnel.harness.orchestrate.labs import labs, small_disk
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.run.traffic import Unsupported
from windtunnel.harness.scenario.schema.archive import ANSWER_PORT, CONTROL_PORT, COPY_PORT, Archive

READY = "archive ready"
"""How the line begins with which an archive says that clients may connect."""

PROGRAM = ("-m", "windtunnel.driver.archive", "run")
"""Of our archive, the only one that is started here; arguments after the interpreter."""

_VARIABLES = {
    # As for the driver: hosts share one machine.
    "AERON_ARCHIVE_THREADING_MODE": "SHARED",
    "AERON_ARCHIVE_IDLE_STRATEGY": "sleep-ns",
    "AERON_ARCHIVE_CONTROL_CHANNEL_ENABLED": "false",
    # Longer than Aeron's: that nobody came within seconds is a slow host's doing, too, and a
    # refusal does not say so, as a silence does.
    "AERON_ARCHIVE_CONNECT_TIMEOUT": "30s",
    "AERON_ARCHIVE_MESSAGE_TIMEOUT": "30s",
    # An archive refuses to start without these, though nobody asks it to replicate.
    "AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL": "aeron:udp?endpoint=localhost:0",
    "AERON_ARCHIVE_REPLICATION_CHANNEL": "aeron:udp?endpoint=localhost:0",
}


_PACED = {"AERON_NAK_UNICAST_DELAY": "10us"}


def require(order: RunSpec) -> None:
    """Raise Unsupported unless each host that is to have an archive can have one."""
    for archive in order.scenario.archives:
        tested = order.subject(archive.host)
        if not tested.has_archive:
            text = f"{tested.name} brings no archive, and host {archive.host} is to have one"
            raise Unsupported(text)
        if archive.disk_bytes is not None and order.fidelity != labs.NETNS:
            text = f"fidelity {order.fidelity} mounts no disk, and the archive on {archive.host}"
            raise Unsupported(f"{text} is to have one of its own")


def command(python: str, *, archive: str, aeron: str, disk_bytes: int | None = None) -> list[str]:
    """The words of an archive: its own directory, and that of its driver."""
    words = [python, *PROGRAM, "--dir", archive, "--aeron-dir", aeron]
    return words if disk_bytes is None else small_disk.command(python, archive, disk_bytes, words)


def variables(archive: Archive, address: str = "") -> dict[str, str]:
    """What an archive reads from its environment; with an address others may speak to it there."""
    found = {**_VARIABLES, "AERON_ARCHIVE_SEGMENT_FILE_LENGTH": str(archive.segment_bytes)}
    if archive.disk_bytes is not None:
        # The disk is to become full, and not to be refused while there is room.
        found["AERON_ARCHIVE_LOW_STORAGE_SPACE_THRESHOLD"] = "0"
    if address:
        endpoint = f"aeron:udp?endpoint={address}"
        found |= {
            "AERON_ARCHIVE_CONTROL_CHANNEL_ENABLED": "true",
            "AERON_ARCHIVE_CONTROL_CHANNEL": f"{endpoint}:{CONTROL_PORT}",
            "AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL": f"{endpoint}:{ANSWER_PORT}",
            "AERON_ARCHIVE_REPLICATION_CHANNEL": f"{endpoint}:{COPY_PORT}",
        }
    return found


def driver_variables(all_archives: Sequence[Archive], host: str) -> dict[str, str]:
    """What a host's driver reads because of the archive beside it, if there is one.

    An archive subscribes with channels of its own making, without the `nak-delay` that a stream
    asks for. By default a gap is asked for again every 100 us, and where hosts are slow that is a
    storm which fills relay and sockets until nobody is answered: here it is every millisecond.
    """
    return _PACED if any(each.host == host for each in all_archives) else {}


def says_ready(line: str) -> bool:
    """Whether a line of an archive's log says that it is."""
    return line.startswith(READY)
