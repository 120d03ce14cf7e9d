"""A C function that is called by its address, from Python and from compiled code."""

import ctypes

import pytest
from numba import njit

from windtunnel.driver.kernels.jit import JIT_DISABLED
from windtunnel.harness.simulator.world import native_call

KIND = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


@pytest.mark.parametrize("result", [0, 7, -1, (1 << 31) - 1, -(1 << 31)])
def test_passes_the_argument_and_returns_the_signed_result(result):
    seen = []

    @KIND
    def function(argument):
        seen.append(argument)
        return result

    @njit
    def compiled(address, argument):
        return native_call.call(address, argument)

    call = native_call.call if JIT_DISABLED else compiled
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert call(address, 1 << 47) == result
    assert seen == [1 << 47]
