"""Loads kernels from the cache on disk before the first message needs them.

    add_publication   loads the kernel of `offer`      first offer          no delay
    add_subscription  loads the kernels of `poll`      first poll           no delay

Loading a kernel takes several milliseconds, by which the first message would otherwise be late.
"""

from collections.abc import Callable
from functools import cache


@cache
def load_stored(kernel: Callable[..., object]) -> None:
    """Load a kernel's machine code, once per process, if the cache contains it."""
    load: Callable[[], int] | None = getattr(kernel, "load_stored", None)
    if load is not None:
        load()
