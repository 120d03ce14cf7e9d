"""Calls a C function by its address from a compiled kernel.

call(function, argument) -> int         int function(void *argument)
"""

import ctypes
from typing import Any

from windtunnel.driver.kernels.jit import JIT_DISABLED, Deferred


def _make_call() -> Any:
    from llvmlite import ir
    from numba import int64
    from numba.extending import intrinsic

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.IntType(32), [pointer])
        target = builder.inttoptr(arguments[0], kind.as_pointer())
        found = builder.call(target, [builder.inttoptr(arguments[1], pointer)])
        return builder.sext(found, ir.IntType(64))

    def call_function(typing_context: Any, function: Any, argument: Any) -> Any:
        """Call the C function at an address with one pointer argument."""
        return int64(int64, int64), generate

    return intrinsic(call_function)


def _call_in_python(function: int, argument: int) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(int(function))(int(argument)))


call: Any = _call_in_python if JIT_DISABLED else Deferred(_make_call)
"""Compiled function (function address, argument address) -> the function's result."""
