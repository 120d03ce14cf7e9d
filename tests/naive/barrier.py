"""A barrier for threads that must run at the same time."""

from windtunnel.driver.base import system
from windtunnel.driver.base.atomics import get_i64_acquire, put_i64_release
from windtunnel.driver.kernels.jit import kernel

WAITS_MAX = 1_000_000


@kernel
def wait_for_all(arrived, thread):
    """Wait as thread number `thread` until all threads have arrived.

    `arrived` is uint8[8 * threads], zeroed. Without the barrier the threads would run one after the
    other, and a test would rarely detect a lost update.
    """
    put_i64_release(arrived, 8 * thread, 1)
    for other in range(arrived.size // 8):
        for _ in range(WAITS_MAX):
            if get_i64_acquire(arrived, 8 * other) != 0:
                break
            system.yield_cpu()
