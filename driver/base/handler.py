"""Compiles kernels that take a compiled function as their first argument.

Each process compiles such a kernel again for each function, without a cache on disk, because a
function argument has no stable cache key.
"""

from collections.abc import Callable
from typing import Any

from windtunnel.driver.kernels.jit import JIT_DISABLED


def kernel_of_handler(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a kernel whose first argument is a compiled handler. The kernel runs without the GIL
    and is not cached on disk.
    """
    if JIT_DISABLED:
        return function
    import numba

    compile_lazily: Any = numba.njit(nogil=True)
    compiled: Callable[..., Any] = compile_lazily(function)
    return compiled


def is_compiled(function: object) -> bool:
    """Return whether kernels can call a function, that is, whether it is compiled or the JIT is
    disabled.
    """
    return JIT_DISABLED or hasattr(function, "py_func")
