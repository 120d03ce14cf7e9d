"""Processor time and memory of a process, from procfs.

Source: proc(5).
"""

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_UTIME, _STIME = 11, 12
"""Indexes of the fields of /proc/<pid>/stat after the command name."""
KIB = 1024


@dataclass(frozen=True)
class Memory:
    """The memory of a process, in bytes."""

    resident: int
    anonymous: int
    """Anonymous resident memory, without mapped files and shared memory."""


def parse_processor_ns(stat: str) -> int:
    """Return user and system time in ns from a stat file, whose command name may be arbitrary."""
    fields = stat.rpartition(")")[2].split()
    ticks = int(fields[_UTIME]) + int(fields[_STIME])
    return ticks * 1_000_000_000 // _TICKS_PER_SECOND


def parse_memory(status: str) -> Memory:
    """Return the resident memory from a status file; 0 for a missing line."""
    lengths = {"VmRSS": 0, "RssAnon": 0}
    for line in status.splitlines():
        name, _, rest = line.partition(":")
        if name in lengths:
            lengths[name] = int(rest.split()[0]) * KIB
    return Memory(lengths["VmRSS"], lengths["RssAnon"])


def processor_ns(pid: int) -> int:
    """Return user and system time of a process in ns; raises OSError if it has ended."""
    return parse_processor_ns(Path(f"/proc/{pid}/stat").read_text())


def memory(pid: int) -> Memory:
    """Return the resident memory of a process; raises OSError if it ended."""
    return parse_memory(Path(f"/proc/{pid}/status").read_text())
