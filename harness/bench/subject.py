"""The two drivers that a benchmark compares: names, commands and environments.

Variables whose names begin with AERON_ are removed from the environment, so only the benchmark's
settings apply.
"""

import importlib.metadata
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from windtunnel.harness.bench.plan import PYAERON, BenchSettings
from windtunnel.harness.orchestrate.fidelity import NETNS
from windtunnel.harness.orchestrate.subjects import peers


@dataclass(frozen=True)
class DriverSubject:
    """The name of a driver, and the command that starts it."""

    name: str
    title: str
    command: tuple[str, ...]
    client: str
    """The client that is measured with this driver in cases that measure calls."""


OURS = DriverSubject(
    "ours", "windtunnel-driver", (sys.executable, "-m", "windtunnel.driver"), "windtunnel"
)
C = DriverSubject(
    "c", "Aeron C driver", (sys.executable, "-m", "windtunnel.harness.bench.c_driver"), PYAERON
)
SUBJECTS = {subject.name: subject for subject in (OURS, C)}


def peer_of(settings: BenchSettings) -> DriverSubject:
    """Return the driver that ours is compared with. Raises PeerError for another name than
    `pyaeron` or `aeronmd:` and the path of a program.
    """
    if settings.peer == PYAERON:
        return C
    if not settings.peer.startswith(peers.PATH_PREFIX):
        raise peers.PeerError(
            f"expected {PYAERON} or {peers.PATH_PREFIX} and a path, found {settings.peer!r}"
        )
    found = peers.find(settings.peer, NETNS, Path())
    return DriverSubject(C.name, found.name, found.driver, C.client)


def subjects(settings: BenchSettings) -> list[DriverSubject]:
    """Return the drivers to measure, which are none if no case measures one."""
    known = SUBJECTS | {C.name: peer_of(settings)}
    chosen = settings.drivers if settings.chosen() else ()
    return [known[name] for name in chosen if name in known]


def plain_environment(ambient: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment for a load generator: the current one without Aeron's settings."""
    return {name: text for name, text in ambient.items() if not name.startswith("AERON_")}


def driver_directory(settings: BenchSettings, folder: Path) -> Path:
    """Return the directory of a driver whose other files are in `folder`."""
    return Path(settings.memory or folder) / "aeron"


def environment(
    subject: DriverSubject,
    settings: BenchSettings,
    directory: Path,
    ambient: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """Return the environment variables for a driver process."""
    variables = plain_environment(ambient)
    variables |= {"AERON_THREADING_MODE": settings.threading_mode}
    variables |= settings.both_set
    if subject is OURS:
        variables |= settings.ours_set
    # The directory is fixed, because another directory would select another driver.
    return variables | {"AERON_DIR": str(directory)}


def c_version() -> str | None:
    """Return the installed version of pyaeron, or None if it is not installed."""
    try:
        return importlib.metadata.version("pyaeron")
    except importlib.metadata.PackageNotFoundError:
        return None
