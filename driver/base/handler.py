"""Kernels that take another compiled function as their first argument.

Such a kernel is compiled for each function anew and in each process, since a function has no name
that would find its build again; so nothing is written to the cache.
"""

from collections.abc import Callable
from typing import Any

import numba

from windtunnel.driver.kernels.jit import JIT_DISABLED


def kernel_of_handler(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function whose first argument is a handler: without the GIL, not cached."""
    if JIT_DISABLED:
        return function
    compile_lazily: Any = numba.njit(nogil=True)
    compiled: Callable[..., Any] = compile_lazily(function)
    return compiled


def is_compiled(function: object) -> bool:
    """Whether kernels can call it: numba compiled it, or runs everything as Python."""
    return JIT_DISABLED or hasattr(function, "py_func")
