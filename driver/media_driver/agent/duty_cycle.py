"""How long an agent's turns take: the longest so far, and how many were longer than a threshold.

A turn's length is the time since the turn before it began, idling included, as tools expect to see
it.
"""

import numpy as np

from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel

DUTY_CYCLE = np.dtype(
    [
        ("last_ns", "i8"),  # when the turn before began; 0 before the first
        ("threshold_ns", "i8"),
        ("max_id", "i8"),  # counter of the longest
        ("exceeded_id", "i8"),  # counter of the too long
    ]
)


def make_duty_cycle(max_id: int, exceeded_id: int, threshold_ns: int) -> np.recarray:
    """A fresh tracker, DUTY_CYCLE[1]."""
    state = np.zeros(1, dtype=DUTY_CYCLE).view(np.recarray)
    state[0] = (0, threshold_ns, max_id, exceeded_id)
    return state


@kernel
def measure(state, values, now_ns):
    """Note that a turn begins now."""
    rec = state[0]
    if rec.last_ns != 0:
        length_ns = now_ns - rec.last_ns
        if length_ns > counters.get(values, rec.max_id):
            counters.set_release(values, rec.max_id, length_ns)
        if length_ns > rec.threshold_ns:
            counters.increment(values, rec.exceeded_id)
    rec.last_ns = now_ns
