"""The files that simulators leave behind."""

import numpy as np

from windtunnel.harness.artifact.run.simulator_turn import CELLS, HOST, NOW, PART, START_NS


def content(host: int, part: int, virtual_ns: int = 0) -> bytes:
    """Return the file of a simulator that has ended in this turn of a host, given by its index."""
    cells = np.full(CELLS, -7, dtype=np.int64)
    cells[[NOW, HOST, PART]] = START_NS + virtual_ns, host, part
    return cells.tobytes()
