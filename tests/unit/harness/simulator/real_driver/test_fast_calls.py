"""System calls in machine code: the same results as in Python, which executes the unusual cases."""

import ctypes
import errno
from ctypes import CFUNCTYPE, c_int, c_uint, c_void_p

import numpy as np
import pytest

from windtunnel.driver.kernels import processor
from windtunnel.driver.kernels.jit import JIT_DISABLED
from windtunnel.harness.simulator.real_driver import fast_calls
from windtunnel.harness.simulator.real_driver.fast_calls_table import (
    CALLS,
    CALLS_MAX,
    FIRST_DESCRIPTOR,
    RINGS_MAX,
)

pytestmark = pytest.mark.skipif(
    JIT_DISABLED or not processor.is_native(), reason="only x86-64 has the functions"
)
CLOCK = CFUNCTYPE(c_int, c_int, c_void_p, use_errno=True)
RECEIVE = CFUNCTYPE(c_int, c_int, c_void_p, c_uint, c_int, c_void_p, use_errno=True)
SLOW_RESULT = 77
EPOCH_NS = 1_600_000_000_000_000_000
now = np.array([5_000_000_007], dtype=np.int64)


@pytest.fixture
def functions(monkeypatch):
    """Return the functions, and a list of the calls of their versions in Python."""
    seen = []

    @CLOCK
    def clock(which, time):
        seen.append(("clock", which))
        return SLOW_RESULT

    @RECEIVE
    def receive(descriptor, *rest):
        seen.append(("receive", descriptor))
        return SLOW_RESULT

    monkeypatch.setattr(fast_calls, "_code", [])
    before = fast_calls.table.copy()
    made = fast_calls.make({"clock_gettime": clock, "recvmmsg": receive})
    fast_calls.open_world(now.ctypes.data, EPOCH_NS)
    yield made["clock_gettime"], made["recvmmsg"], seen
    fast_calls.table[:] = before


@pytest.mark.parametrize(("which", "epoch_ns"), [(0, EPOCH_NS), (1, 0), (5, EPOCH_NS), (6, 0)])
def test_the_clock_is_the_worlds(functions, which, epoch_ns):
    clock, _, seen = functions
    time = (ctypes.c_int64 * 2)()
    assert clock(which, ctypes.addressof(time)) == 0
    assert list(time) == list(divmod(epoch_ns + int(now[0]), 1_000_000_000))
    assert seen == []


def test_an_empty_socket_has_no_datagram(functions):
    _, receive, seen = functions
    ring = np.array([64, 64], dtype=np.int64)
    descriptor = FIRST_DESCRIPTOR + RINGS_MAX - 1
    fast_calls.set_ring(descriptor, ring.ctypes.data)
    assert receive(descriptor, None, 1, 0, None) == -1
    assert ctypes.get_errno() == errno.EAGAIN
    assert seen == []
    ring[1] += 8
    assert receive(descriptor, None, 1, 0, None) == SLOW_RESULT
    fast_calls.set_ring(descriptor, 0)
    ring[1] -= 8
    assert receive(descriptor, None, 1, 0, None) == SLOW_RESULT
    assert seen == [("receive", descriptor)] * 2


@pytest.mark.parametrize("index", [-1, fast_calls.RINGS_MAX])
def test_other_descriptors_are_pythons(functions, index):
    _, receive, seen = functions
    descriptor = fast_calls.FIRST_DESCRIPTOR + index
    assert receive(descriptor, None, 1, 0, None) == SLOW_RESULT
    assert seen == [("receive", descriptor)]


def test_a_socket_beyond_the_table_does_not_change_it(functions):
    before = fast_calls.table.copy()
    fast_calls.set_ring(FIRST_DESCRIPTOR + RINGS_MAX, 8)
    assert (fast_calls.table == before).all()


def test_python_is_called_when_no_world_runs(functions):
    clock, _, seen = functions
    fast_calls.close_world()
    assert clock(1, None) == SLOW_RESULT
    assert seen == [("clock", 1)]


def test_python_checks_the_time_after_the_maximum_number_of_calls(functions):
    clock, _, seen = functions
    time = (ctypes.c_int64 * 2)()
    fast_calls.table[CALLS] = CALLS_MAX - 2
    assert clock(1, ctypes.addressof(time)) == 0
    assert clock(1, ctypes.addressof(time)) == SLOW_RESULT
    assert seen == [("clock", 1)]
