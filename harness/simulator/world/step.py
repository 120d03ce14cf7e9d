"""Steps of a simulated world: it stops at the end of the first step in which anything has worked.

step      step      step      step
|---------|---------|----*----|         * an agent or a Python duty cycle has worked
                              stops
"""

from typing import Any

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.simulator.world.world_state import HAS_WORKED, NOW, STEP, STEP_END


@kernel
def is_over(state: Any, until_ns: int) -> bool:
    """Return whether the world must stop: it has reached the given time, or the end of a step in
    which anything has worked. The next step begins at the end of a step without work.
    """
    if state[NOW] >= until_ns:
        return True
    while state[NOW] >= state[STEP_END]:
        if state[HAS_WORKED] != 0:
            return True
        state[STEP_END] += state[STEP]
    return False
