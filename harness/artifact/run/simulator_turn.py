"""Whose code the simulator's process is running, and at what virtual time. Outlives the process.

    simulator   --maps, and stores these numbers-->  FILE in the run's memory directory
    runner      --reads FILE if a signal such as SIGSEGV has ended the simulator-->  SimulatorTurn

The file is the state of the simulated world, int64[CELLS] in the machine's byte order. The process
that crashed may have written anything to it, so the reader validates each number that it uses.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from windtunnel.harness.artifact.regular_file import open_regular

FILE = "world.state"
"""Name of the file. It has a dot, so it is not the name of a host."""
CELLS = 20
NOW, HOST, PART = 0, 11, 16
"""Cells: the monotonic time, the index of the host, and the number of its part that is running."""
START_NS = 1_000_000_000
"""Monotonic time at which each simulation starts."""
PARTS = ("", "conductor", "sender", "receiver", "duty cycle", "client")
"""Names of the parts, by number. No part of a host is running at 0: other code is, such as the
middlebox's. A real driver runs all its agents in one duty cycle."""
NO_PART, CLIENT = PARTS.index(""), PARTS.index("client")
_CELL_BYTES = 8


@dataclass(frozen=True)
class SimulatorTurn:
    """The turn of a simulator: the part of a host whose code is running, and the virtual time."""

    host: str
    "Name of the host, or an empty string if no host's code is running."
    part: str
    "Name of the part, one of PARTS."
    virtual_ns: int
    "Virtual time since the start of the simulation in nanoseconds."

    @property
    def is_drivers(self) -> bool:
        """Whether the running code belongs to a host's driver."""
        return self.part not in (PARTS[NO_PART], PARTS[CLIENT])


def read_turn(path: Path, hosts: Sequence[str]) -> SimulatorTurn | None:
    """Read the turn in which a simulator of these hosts has ended.

    Returns None if there is no file, or if it does not contain a turn of such a simulator.
    """
    try:
        with open_regular(path) as file:
            content = file.read(CELLS * _CELL_BYTES + 1)
    except OSError:
        return None
    if len(content) != CELLS * _CELL_BYTES:
        return None
    cells = np.frombuffer(content, dtype=np.int64)
    now_ns, host, part = (int(cells[each]) for each in (NOW, HOST, PART))
    if now_ns < START_NS or not 0 <= host < len(hosts) or not 0 <= part < len(PARTS):
        return None
    name = hosts[host] if part != NO_PART else ""
    return SimulatorTurn(name, PARTS[part], now_ns - START_NS)
