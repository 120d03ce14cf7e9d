"""The file in which a simulator keeps the turn of a host."""

import numpy as np

from windtunnel.harness.artifact.run.simulator_turn import CELLS, HOST, NOW, PART, START_NS


def content(host: int, part: int, virtual_ns: int = 0) -> bytes:
    """Return the file of a simulator that has ended in this turn of the host with this index."""
    cells = np.full(CELLS, -7, dtype=np.int64)
    cells[[NOW, HOST, PART]] = START_NS + virtual_ns, host, part
    return cells.tobytes()
