"""A gate for threads that must truly run at the same time: each waits until all have arrived."""

from windtunnel.driver.base import system
from windtunnel.driver.base.atomics import get_i64_acquire, put_i64_release
from windtunnel.driver.kernels.jit import kernel

WAITS_MAX = 1_000_000


@kernel
def pass_together(gate, who):
    """Arrive as number `who` and leave with the others; `gate` is uint8[8 * threads], zeroed.

    Threads that were started one after the other would otherwise work one after the other, and a
    lost update would need luck to be seen.
    """
    put_i64_release(gate, 8 * who, 1)
    for other in range(gate.size // 8):
        for _ in range(WAITS_MAX):
            if get_i64_acquire(gate, 8 * other) != 0:
                break
            system.yield_cpu()
