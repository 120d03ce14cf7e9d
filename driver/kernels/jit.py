"""Decorators that compile kernels with the project's numba options.

A kernel is a function of numbers, arrays and named tuples of arrays. It uses no objects, no clock
and no randomness, and allocates nothing on a hot path. It is compiled when it is first called with
new types, and then stored in the cache on disk. It runs without the GIL.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numba
from llvmlite import binding as llvm
from numba.core.caching import FunctionCache

from windtunnel.driver.kernels import processor
from windtunnel.driver.kernels.cache import KernelCache
from windtunnel.driver.kernels.dispatcher import KernelDispatcher
from windtunnel.driver.kernels.sources import SOURCE_ROOT

_SETTINGS: Any = numba.config
processor.select(_SETTINGS, llvm.get_host_cpu_features())

JIT_DISABLED = bool(_SETTINGS.DISABLE_JIT)
"""True if `NUMBA_DISABLE_JIT=1` is set. Kernels then run as plain Python."""

BOUNDS_CHECKED = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")
"""True if `NUMBA_BOUNDSCHECK=1` is set. `atomics` then asserts the bounds of each access.
"""

_FUNCTION = TypeVar("_FUNCTION", bound=Callable[..., object])


def kernel(function: _FUNCTION) -> _FUNCTION:
    """Compile a function without reference counting. The function cannot allocate memory.

    The arguments must outlive the call. Counting references would cost a locked instruction per
    call for each array of an agent's state.
    """
    return _compiled(function, {"nogil": True, "_nrt": False})


def allocating_kernel(function: _FUNCTION) -> _FUNCTION:
    """Compile a function that may allocate arrays and return them."""
    return _compiled(function, {"nogil": True})


def _compiled(function: _FUNCTION, options: dict[str, bool]) -> _FUNCTION:
    if JIT_DISABLED:
        return function
    compiled: Any = KernelDispatcher(
        function, _cache_of, targetoptions={"nopython": True, **options}
    )
    result: _FUNCTION = compiled
    return result


def _cache_of(function: Callable[..., object]) -> FunctionCache:
    if Path(function.__code__.co_filename).resolve().is_relative_to(SOURCE_ROOT):
        return KernelCache(function)
    return FunctionCache(function)


def compile_for(function: Callable[..., object], arguments: Sequence[object]) -> None:
    """Load the compiled kernel for these argument types from the cache, or compile it."""
    if not JIT_DISABLED:
        compiled: Any = function
        compiled.compile(tuple(numba.typeof(each) for each in arguments))
