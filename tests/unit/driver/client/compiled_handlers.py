"""Handlers compiled by numba for polls, and a concurrent update of a counter."""

import numba

from windtunnel.driver.base.atomics import get_i64_acquire
from windtunnel.driver.client.counter import propose_max_atomic


@numba.njit
def count_bytes(buffer, offset, length, header, state):
    """state: fragments, bytes, sum of the bytes' values, last position, last reserved value."""
    state[0] += 1
    state[1] += length
    for at in range(offset, offset + length):
        state[2] += buffer[at]
    state[3] = header.position
    state[4] = header.reserved_value


@numba.njit
def answer_from(buffer, offset, length, header, state):
    """state: the number of calls so far, then the result of each call."""
    state[0] += 1
    return state[state[0]]


@numba.njit
def fail_at_third(buffer, offset, length, header, state):
    state[0] += 1
    if state[0] == 3:
        raise ValueError("third")


@numba.njit(nogil=True)
def raise_often(values, at, times):
    """Try to raise a counter by one; returns how often this caller raised it."""
    raised = 0
    for _ in range(times):
        if propose_max_atomic(values, at, get_i64_acquire(values, at) + 1):
            raised += 1
    return raised
