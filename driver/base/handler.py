"""Kernels with a compiled function as their first argument.

Such a kernel is compiled again for each function and in each process, without a cache on disk:
a function argument has no stable key by which a cached build could be found.
"""

from collections.abc import Callable
from typing import Any

import numba

from windtunnel.driver.kernels.jit import JIT_DISABLED


def kernel_of_handler(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function whose first argument is a handler, without GIL and without cache."""
    if JIT_DISABLED:
        return function
    compile_lazily: Any = numba.njit(nogil=True)
    compiled: Callable[..., Any] = compile_lazily(function)
    return compiled


def is_compiled(function: object) -> bool:
    """Return whether a kernel can call the function: numba compiled it, or the JIT is disabled."""
    return JIT_DISABLED or hasattr(function, "py_func")
