"""The machine a benchmark ran on, and whether it had anything else to do.

Figures of a busy machine mean little: both drivers and both loads share its cores with the rest.
"""

import os
import platform
from dataclasses import dataclass
from pathlib import Path

LOAD_PER_CORE_MAX = 0.5


@dataclass(frozen=True)
class BenchMachine:
    """What a figure depends on besides the drivers."""

    cores: int
    """That this process may use."""
    processor: str
    kernel: str
    python: str
    load_average: float
    """Of the last minute, at the start."""

    @property
    def warning(self) -> str:
        """Why the figures mean little; empty on a quiet machine."""
        limit = LOAD_PER_CORE_MAX * self.cores
        if self.load_average <= limit:
            return ""
        return (
            f"the machine was busy: load average {self.load_average:.2f} at the start on "
            f"{self.cores} cores, expected at most {limit:.2f}; these figures mean little"
        )

    @property
    def line(self) -> str:
        """All of it in one line."""
        return (
            f"{self.cores} cores, {self.processor}, Linux {self.kernel}, Python {self.python}, "
            f"load average {self.load_average:.2f} at the start"
        )


def processor_name(cpuinfo: str) -> str:
    """The model out of the text of /proc/cpuinfo."""
    for line in cpuinfo.splitlines():
        name, _, rest = line.partition(":")
        if name.strip() == "model name":
            return rest.strip()
    return platform.machine() or "unknown processor"


def look() -> BenchMachine:
    """The machine now."""
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        cpuinfo = ""
    return BenchMachine(
        cores=len(os.sched_getaffinity(0)),
        processor=processor_name(cpuinfo),
        kernel=platform.release(),
        python=platform.python_version(),
        load_average=os.getloadavg()[0],
    )
