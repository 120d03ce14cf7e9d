"""Executes the system calls that a real driver makes in each duty cycle as machine code.

    library --slot--> machine code --the usual case--> result
                           `-- any other case --> Python, see `system_calls`

Reading the clock, and receiving from an empty socket, are nearly all calls of a driver. In Python
each of them would take longer than the rest of the duty cycle. The code reads the table of this
module, whose words the running world sets, and is stored in the cache like a kernel.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.driver.kernels import native_runtime, processor
from windtunnel.driver.kernels.jit import JIT_DISABLED
from windtunnel.driver.kernels.kernel_image import KernelImage, from_object
from windtunnel.driver.kernels.kernel_store import KernelStore
from windtunnel.harness.simulator.real_driver.fast_calls_table import (
    CALLS,
    EPOCH_NS,
    FIRST_DESCRIPTOR,
    FUNCTIONS,
    NOW_AT,
    RINGS,
    RINGS_MAX,
    SLOW,
    TABLE,
)

table: NDArray[np.int64] = np.zeros(RINGS + RINGS_MAX, dtype=np.int64)
_code: list[Any] = []


def make(slow: dict[str, Any]) -> dict[str, Any]:
    """Return the functions in machine code by name, as ctypes functions.

    `slow` contains their complete versions in Python, which must outlive them. The result is empty
    on processors other than x86-64, and without the JIT.
    """
    if JIT_DISABLED or not processor.is_native():
        return {}
    native_runtime.add_symbol(TABLE, table.ctypes.data)
    found = {}
    for index, name in enumerate(FUNCTIONS):
        table[SLOW + index] = ctypes.cast(slow[name], ctypes.c_void_p).value or 0
        image = _image(name)
        code, _ = native_runtime.place(image)
        _code.append(code)
        found[name] = type(slow[name])(code.ctypes.data + image.entry)
    return found


def open_world(now_at: int, epoch_ns: int) -> None:
    """Set the address of a world's time, and the epoch time at which it is zero."""
    close_world()
    table[NOW_AT], table[EPOCH_NS] = now_at, epoch_ns


def close_world() -> None:
    """Make all functions use Python until the next world opens."""
    table[NOW_AT] = table[CALLS] = 0
    table[RINGS:] = 0


def set_ring(descriptor: int, address: int) -> None:
    """Set the address of a socket's inbound ring, or 0 when the socket closes.

    Only the first `RINGS_MAX` sockets of a world have fast calls.
    """
    index = descriptor - FIRST_DESCRIPTOR
    if index < RINGS_MAX:
        table[RINGS + index] = address


def _image(name: str) -> KernelImage:
    """Return a function's machine code from the kernel cache, or compile and store it."""
    store = KernelStore(make)
    found = store.load(name)
    if found is None:
        from windtunnel.harness.simulator.real_driver import fast_calls_code

        found = from_object(fast_calls_code.object_code(name), f"fast_{name}")
        store.save(name, found)
    return found
