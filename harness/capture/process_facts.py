"""Reads a process's processor time and memory from procfs.

Source: proc(5).
"""

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_UTIME, _STIME = 11, 12
"""Indexes of user time and system time among the fields after the command in /proc/<pid>/stat."""
KIB = 1024


@dataclass(frozen=True)
class Memory:
    """The memory of a process, in bytes."""

    resident: int
    anonymous: int
    """Resident memory without mapped files and shared memory."""


def parse_processor_ns(stat: str) -> int:
    """Return the sum of a process's user and system time in ns, parsed from its stat file. The
    command name in this file may contain spaces and parentheses.
    """
    fields = stat.rpartition(")")[2].split()
    ticks = int(fields[_UTIME]) + int(fields[_STIME])
    return ticks * 1_000_000_000 // _TICKS_PER_SECOND


def parse_memory(status: str) -> Memory:
    """Parse the resident memory from a status file. A missing line counts as 0."""
    lengths = {"VmRSS": 0, "RssAnon": 0}
    for line in status.splitlines():
        name, _, rest = line.partition(":")
        if name in lengths:
            lengths[name] = int(rest.split()[0]) * KIB
    return Memory(lengths["VmRSS"], lengths["RssAnon"])


def processor_ns(pid: int) -> int:
    """Return the sum of a process's user and system time in ns. Raises OSError if the process has
    ended.
    """
    return parse_processor_ns(Path(f"/proc/{pid}/stat").read_text())


def run_delay_ns(pid: int) -> int:
    """Return how long the main thread of a process has waited for a processor, in ns, or 0 if the
    kernel does not report it. Source: sched-stats.rst, /proc/<pid>/schedstat.
    """
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])
    except (OSError, IndexError):
        return 0


def memory(pid: int) -> Memory:
    """Return a process's resident memory. Raises OSError if the process has ended."""
    return parse_memory(Path(f"/proc/{pid}/status").read_text())
