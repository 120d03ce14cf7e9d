"""Executes the system calls that a real driver makes most often as machine code.

    library --slot--> C function --> kernel --the usual case--> result
                                           `-- any other case --> Python, see `system_calls`

Reading the clock, and sending and receiving datagrams, are nearly all calls of a driver. In Python
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
from windtunnel.harness.simulator.real_driver import fast_calls_kernels
from windtunnel.harness.simulator.real_driver.fast_calls_table import (
    CALLS,
    CURRENT_AT,
    FIRST_DESCRIPTOR,
    INNER,
    NOW_AT,
    SLOW,
    SOCKET_WORDS,
    SOCKETS,
    SOCKETS_MAX,
    TABLE,
    WORDS,
)

FUNCTIONS: dict[str, tuple[int, ...]] = {
    "clock_gettime": (32, 32, 64),
    "recvmmsg": (32, 32, 64, 32, 32, 64),
    "recvmsg": (64, 32, 64, 32),
    "sendmmsg": (32, 32, 64, 32, 32),
    "sendmsg": (64, 32, 64, 32),
    "send": (64, 32, 64, 64, 32),
}
"""The functions, with the sizes of their result and of their arguments in bits."""
_KERNEL = "kernel"
table: NDArray[np.int64] = np.zeros(WORDS, dtype=np.int64)
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
        table[INNER + index] = _place(_kernel_image(name))
        found[name] = type(slow[name])(_place(_wrapper_image(index, name)))
    return found


def open_world(
    time_ns: NDArray[np.int64], steps_ns: NDArray[np.int64], current: NDArray[np.int64]
) -> None:
    """Set the addresses of a world's monotonic time, of the steps of each host's clock, and of the
    index of the host whose driver is running.
    """
    close_world()
    table[NOW_AT : CURRENT_AT + 1] = [each.ctypes.data for each in (time_ns, steps_ns, current)]


def close_world() -> None:
    """Make all functions use Python until the next world opens."""
    table[NOW_AT] = table[CALLS] = 0
    table[SOCKETS:] = 0


def set_socket(descriptor: int, words: tuple[int, int, int, int]) -> None:
    """Set the words of a socket when it gets a mailbox, or zeros when it closes.

    Only the first `SOCKETS_MAX` sockets of a world have fast calls.
    """
    index = descriptor - FIRST_DESCRIPTOR
    if index < SOCKETS_MAX:
        at = SOCKETS + index * SOCKET_WORDS
        table[at : at + SOCKET_WORDS] = words


def _place(image: KernelImage) -> int:
    """Return the address of machine code that stays for the life of the process."""
    placed = native_runtime.place(image)
    _code.append(placed)
    return int(placed[0].ctypes.data) + image.entry


def _kernel_image(name: str) -> KernelImage:
    """Return a kernel's machine code for callers in machine code, from the cache or compiled."""
    kernel: Any = getattr(fast_calls_kernels, name)
    store = KernelStore(kernel.py_func)
    found = store.load(_KERNEL)
    if found is None:
        dispatcher = kernel.numba_dispatcher
        dispatcher.prepare((0,) * len(FUNCTIONS[name]))
        (result,) = dispatcher.overloads.values()
        found = from_object(result.library.object_code(), result.fndesc.llvm_func_name)
        store.save(_KERNEL, found)
    return found


def _wrapper_image(index: int, name: str) -> KernelImage:
    """Return the machine code of a C function, from the cache or compiled."""
    store = KernelStore(make)
    found = store.load(name)
    if found is None:
        from windtunnel.harness.simulator.real_driver import fast_calls_code

        code = fast_calls_code.object_code(name, index, FUNCTIONS[name])
        found = from_object(code, f"fast_{name}")
        store.save(name, found)
    return found
