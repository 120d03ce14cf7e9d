"""A barrier for threads that must run at the same time."""

from windtunnel.driver.base import system
from windtunnel.driver.base.atomics import get_i64_acquire, put_i64_release
from windtunnel.driver.kernels.jit import kernel

WAITS_MAX = 1_000_000


@kernel
def pass_together(gate, who):
    """Wait as thread number `who` until all threads have arrived.

    `gate` is uint8[8 * threads], zeroed. Without the barrier the threads would run one after the
    other, and a test would rarely detect a lost update.
    """
    put_i64_release(gate, 8 * who, 1)
    for other in range(gate.size // 8):
        for _ in range(WAITS_MAX):
            if get_i64_acquire(gate, 8 * other) != 0:
                break
            system.yield_cpu()
