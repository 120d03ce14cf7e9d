"""Facts about this machine and the installed versions, which are recorded with each run."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.host.counter_sample import read_counters
from windtunnel.harness.dissect.driver_files import counter_key

DISTRIBUTIONS = ("windtunnel", "numpy", "numba", "pydantic", "scapy")


def versions() -> dict[str, str]:
    """Return the versions of the interpreter, the Linux kernel and the main packages."""
    found = {"python": sys.version.split()[0], "kernel": platform.release()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed as a distribution"
    return found


def host_facts() -> dict[str, Any]:
    """Return the facts about this machine that can influence a run."""
    return {
        "machine": platform.machine(),
        "system": _first_line("/etc/os-release").removeprefix("PRETTY_NAME=").strip('"'),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load_average": list(os.getloadavg()),
        "clocksource": _first_line(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        ),
        "effective_user_id": os.geteuid(),
        "ticks_per_second": os.sysconf("SC_CLK_TCK"),
    }


def driver_version(counters: Path) -> str:
    """Return the version from the label of a driver's version counter, or "" if it is unknown."""
    try:
        found = read_counters(counters) or []
    except (DocumentError, OSError):
        return ""
    label = counter_key.system_counter(found, counter_key.SOFTWARE_VERSION)
    return "" if label is None else label.label.rpartition("version=")[2].strip()


def steal_ticks() -> int:
    """Return the steal time of this machine since boot, in clock ticks."""
    fields = _first_line("/proc/stat").split()
    return int(fields[8]) if len(fields) > 8 else 0


def _first_line(path: str) -> str:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return lines[0] if lines else ""
