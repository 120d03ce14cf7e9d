"""The two drivers under test: what each is called, how it is started, what it is told.

Ambient AERON_ variables are left out, so that the settings shown are the settings used.
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
    """The environment of a load: what is there, but no setting of Aeron's."""
    return {name: text for name, text in ambient.items() if not name.startswith("AERON_")}


def environment(
    subject: DriverSubject,
    settings: BenchSettings,
    directory: Path,
    ambient: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """What a driver is told."""
    made = plain_environment(ambient)
    made |= {"AERON_THREADING_MODE": settings.threading_mode}
    made |= settings.both_set
    if subject is OURS:
        made |= settings.ours_set
    # Nobody may move the directory: it would be another driver's.
    return made | {"AERON_DIR": str(directory)}


def c_version() -> str | None:
    """Which pyaeron is installed; None where there is none."""
    try:
        return importlib.metadata.version("pyaeron")
    except importlib.metadata.PackageNotFoundError:
        return None
