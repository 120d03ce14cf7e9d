"""Facts about the machine on which a benchmark runs, and its load from other processes.

Results from a busy machine are unreliable, because the driver and the load generators share its
cores with other processes.
"""

import os
import platform
from dataclasses import dataclass
from pathlib import Path

LOAD_PER_CORE_MAX = 0.5


@dataclass(frozen=True)
class BenchMachine:
    """Facts about the machine that affect a benchmark's results."""

    cores: int
    """Number of cores available to this process."""
    processor: str
    kernel: str
    python: str
    load_average: float
    """Load average over the last minute before the benchmark."""

    @property
    def warning(self) -> str:
        """The reason why the benchmark's results are unreliable, or an empty string if the machine
        was idle enough.
        """
        limit = LOAD_PER_CORE_MAX * self.cores
        if self.load_average <= limit:
            return ""
        return (
            f"the machine was busy: load average {self.load_average:.2f} at the start on "
            f"{self.cores} cores, expected at most {limit:.2f}; these figures are unreliable"
        )

    @property
    def line(self) -> str:
        """All facts about the machine on one line."""
        return (
            f"{self.cores} cores, {self.processor}, Linux {self.kernel}, Python {self.python}, "
            f"load average {self.load_average:.2f} at the start"
        )


def processor_name(cpuinfo: str) -> str:
    """Extract the processor's model name from the contents of /proc/cpuinfo."""
    for line in cpuinfo.splitlines():
        name, _, rest = line.partition(":")
        if name.strip() == "model name":
            return rest.strip()
    return platform.machine() or "unknown processor"


def read_machine() -> BenchMachine:
    """Read the current facts about the machine."""
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
