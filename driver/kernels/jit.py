"""Decorators that compile kernels with the project's numba options.

A kernel is a function of numbers, arrays and named tuples of arrays. It uses no objects, no clock
and no randomness, and allocates nothing on a hot path. It is compiled when it is first called with
new types, and then stored in the cache on disk. It runs without the GIL.

numba is imported when a kernel must be compiled, and not before.
"""

import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar, cast

from windtunnel.driver.kernels import processor


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "0") not in ("", "0")


JIT_DISABLED = _is_set("NUMBA_DISABLE_JIT")
"""True if `NUMBA_DISABLE_JIT=1` is set. Kernels then run as plain Python."""

BOUNDS_CHECKED = _is_set("NUMBA_BOUNDSCHECK")
"""True if `NUMBA_BOUNDSCHECK=1` is set. `atomics` then asserts the bounds of each access.
"""

_FUNCTION = TypeVar("_FUNCTION", bound=Callable[..., object])


def kernel(function: _FUNCTION) -> _FUNCTION:
    """Compile a function with numba, without reference counting. The function cannot allocate
    memory.

    The arguments must outlive the call. Counting references would cost a locked instruction per
    call for each array of an agent's state.
    """
    return _compiled(function, {"nogil": True, "_nrt": False})


def inlined_kernel(function: _FUNCTION) -> _FUNCTION:
    """Compile a function like `kernel`, and replace each call from another kernel by its code.

    A state is passed array by array, so for a large function that takes one and is called in a
    loop, the call takes longer than a turn without work.
    """
    return _compiled(function, {"nogil": True, "_nrt": False, "forceinline": True})


def outlined_kernel(function: _FUNCTION) -> _FUNCTION:
    """Compile a function like `kernel`, and never replace a call from another kernel by its code.

    For functions of which one caller calls very many, such as the versions in an exam's driver: the
    time to compile their caller would grow with the square of their number.
    """
    return _compiled(function, {"nogil": True, "_nrt": False}, is_outlined=True)


def _compiled(
    function: _FUNCTION, options: dict[str, bool], *, is_outlined: bool = False
) -> _FUNCTION:
    compiled = function
    if JIT_DISABLED:
        return function
    if processor.is_native():
        from windtunnel.driver.kernels.native_kernel import NativeKernel

        compiled = cast(_FUNCTION, NativeKernel(function, options, is_outlined=is_outlined))
    else:
        from windtunnel.driver.kernels.dispatcher import KernelDispatcher

        options = {"nopython": True, **options}
        made = KernelDispatcher(function, is_outlined=is_outlined, targetoptions=options)
        compiled = cast(_FUNCTION, made)
    return compiled


def compile_for(function: _FUNCTION, arguments: Sequence[object]) -> _FUNCTION:
    """Load the compiled kernel for these argument types from the cache, or compile it.

    Returns the kernel as a function of arguments of exactly these types, which it does not check.
    A call of the kernel itself first determines the types of all arguments: this takes 0.1 ms for
    the states of two drivers, ten times as long as the rest of a short call.
    """
    compiled: Any = function
    bound: _FUNCTION = function if JIT_DISABLED else compiled.prepare(arguments) or function
    return bound


class Deferred:
    """A numba intrinsic that is not created until a kernel that calls it is compiled.

    `make` returns the intrinsic, and may import numba. A call from Python calls `function` instead.
    """

    def __init__(self, make: Callable[[], Any], function: Callable[..., Any] | None = None) -> None:
        self._make = cache(make)
        self._function = function

    @property
    def _numba_type_(self) -> Any:
        """The type that numba gives the intrinsic inside a kernel. Source: numba, `typeof_impl`."""
        from numba.core.registry import cpu_target

        made = self._make()
        # Make numba register the new intrinsic, because the compilation has already begun.
        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()
        return cpu_target.typing_context.resolve_value_type(made)

    def __call__(self, *arguments: Any) -> Any:
        if self._function is None:
            raise TypeError("expected a call from a compiled kernel, found one from Python")
        return self._function(*arguments)
