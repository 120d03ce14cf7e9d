"""The two drivers under test: their names, commands and environments.

AERON_ variables of the environment are removed, so that the settings shown are the settings used.
"""

import importlib.metadata
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from windtunnel.harness.bench.plan import BenchSettings


@dataclass(frozen=True)
class DriverSubject:
    """How one driver is started."""

    name: str
    title: str
    arguments: tuple[str, ...]
    """After the interpreter."""

    def command(self) -> list[str]:
        return [sys.executable, *self.arguments]


OURS = DriverSubject("ours", "windtunnel-driver", ("-m", "windtunnel.driver"))
C = DriverSubject("c", "Aeron C driver", ("-m", "windtunnel.harness.bench.c_driver"))
SUBJECTS = {subject.name: subject for subject in (OURS, C)}


def plain_environment(ambient: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of a load: the current one, without Aeron's settings."""
    return {name: text for name, text in ambient.items() if not name.startswith("AERON_")}


def environment(
    subject: DriverSubject,
    settings: BenchSettings,
    directory: Path,
    ambient: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """Return the environment of a driver."""
    variables = plain_environment(ambient)
    variables |= {"AERON_THREADING_MODE": settings.threading_mode}
    variables |= settings.both_set
    if subject is OURS:
        variables |= settings.ours_set
    # The directory is fixed: another one would be another driver's.
    return variables | {"AERON_DIR": str(directory)}


def c_version() -> str | None:
    """Return the installed version of pyaeron; None if it is not installed."""
    try:
        return importlib.metadata.version("pyaeron")
    except importlib.metadata.PackageNotFoundError:
        return None
