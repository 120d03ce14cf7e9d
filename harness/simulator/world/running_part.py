"""Notes in a world's state whose code is running, and keeps this state in a file that outlives the
process.

    kernels     note the agents that they run themselves
    Python      with parts.driver: ...   with parts.client: ...

The watch of turns reads the state of a program that runs forever. The runner reads the file
if the process has crashed.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.run.simulator_turn import CLIENT
from windtunnel.harness.simulator.world.world_state import (
    ALL_AGENTS,
    CONDUCTOR,
    CURRENT_AGENT,
    CURRENT_HOST,
    NO_AGENT,
)


class RunningPart:
    """A context in which Python runs a part of a host. Contexts are not nested."""

    def __init__(self, state: NDArray[np.int64], host: int, part: int) -> None:
        self._state, self._host, self._part = state, host, part

    def __enter__(self) -> None:
        self._state[CURRENT_HOST] = self._host
        self._state[CURRENT_AGENT] = self._part

    def __exit__(self, *_: object) -> None:
        self._state[CURRENT_AGENT] = NO_AGENT


class HostParts:
    """The contexts of one host."""

    def __init__(self, state: NDArray[np.int64], host: int, *, is_real: bool = False) -> None:
        """`host` is the host's index, and `is_real` whether it has a real driver."""
        self.driver = RunningPart(state, host, ALL_AGENTS if is_real else CONDUCTOR)
        self.client = RunningPart(state, host, CLIENT)


def shared(state: NDArray[np.int64], path: Path) -> NDArray[np.int64]:
    """Return a copy of a world's state that is mapped from a new file.

    The file is written, not only lengthened, so a full file system raises OSError here.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "r+b", buffering=0) as file:
        file.write(state.tobytes())
        return np.asarray(np.memmap(file, dtype=np.int64, mode="r+", shape=state.shape))
