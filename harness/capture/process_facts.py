"""What the kernel has counted of a process: processor time, memory.

Source: proc(5).
"""

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_UTIME, _STIME = 11, 12
"""Fields of /proc/<pid>/stat, counted from behind the name."""
KIB = 1024


@dataclass(frozen=True)
class Memory:
    """What a process holds in memory, in bytes."""

    resident: int
    anonymous: int
    """Of it, what is its own: no mapped files, no shared memory."""


def parse_processor_ns(stat: str) -> int:
    """User and system time of a process out of its stat file; the name in it may hold anything."""
    fields = stat.rpartition(")")[2].split()
    ticks = int(fields[_UTIME]) + int(fields[_STIME])
    return ticks * 1_000_000_000 // _TICKS_PER_SECOND


def parse_memory(status: str) -> Memory:
    """Resident memory of a process out of its status file; 0 where a line is missing."""
    lengths = {"VmRSS": 0, "RssAnon": 0}
    for line in status.splitlines():
        name, _, rest = line.partition(":")
        if name in lengths:
            lengths[name] = int(rest.split()[0]) * KIB
    return Memory(lengths["VmRSS"], lengths["RssAnon"])


def processor_ns(pid: int) -> int:
    """User and system time of a process and all its threads. Raises OSError when it is gone."""
    return parse_processor_ns(Path(f"/proc/{pid}/stat").read_text())


def memory(pid: int) -> Memory:
    """Resident memory of a process. Raises OSError when it is gone."""
    return parse_memory(Path(f"/proc/{pid}/status").read_text())
