"""Measures an agent's duty cycles: the maximum cycle time, and the number of cycles that exceeded a
threshold.

The time is measured from the start of a duty cycle to the start of the next one. It includes
idling, as in Aeron.
"""

import numpy as np

from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel

DUTY_CYCLE = np.dtype(
    (
        np.record,
        [
            ("last_ns", "i8"),  # start of the previous duty cycle, or 0 before the first one
            ("threshold_ns", "i8"),
            ("max_id", "i8"),  # counter of the maximum cycle time
            ("exceeded_id", "i8"),  # counter of cycles above the threshold
        ],
    )
)


def make_duty_cycle(max_id: int, exceeded_id: int, threshold_ns: int) -> np.recarray:
    """Create the state of a duty cycle measurement, an array of one DUTY_CYCLE record."""
    state = np.zeros(1, dtype=DUTY_CYCLE).view(np.recarray)
    state[0] = (0, threshold_ns, max_id, exceeded_id)
    return state


@kernel
def measure(state, values, now_ns):
    """Record the start of a duty cycle, and update the counters with the duration of the previous
    cycle.
    """
    rec = state[0]
    if rec.last_ns != 0:
        length_ns = now_ns - rec.last_ns
        if length_ns > counters.get(values, rec.max_id):
            counters.set_release(values, rec.max_id, length_ns)
        if length_ns > rec.threshold_ns:
            counters.increment(values, rec.exceeded_id)
    rec.last_ns = now_ns
