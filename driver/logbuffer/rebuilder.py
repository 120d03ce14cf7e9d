"""Inserts received datagrams into a term, in any order.

A slot is written only once, so duplicate and late frames change nothing.
Source: driver-protocol 2.9.
"""

from windtunnel.driver.base.atomics import copy_ahead, get_i32_acquire, get_i64, put_i64_release
from windtunnel.driver.kernels.jit import kernel

_FIRST_WORD = 8


@kernel
def insert(log, base, term_offset, packet, packet_at, length):
    """Copy a datagram to its offset in the term. `data.validate` must have accepted the datagram.

    Memory:  the first eight bytes are released last; frames after the first become visible with it,
             because readers scan from the front
    Returns: whether the slot was empty; if it was not, nothing is written
    """
    at = base + term_offset
    if get_i32_acquire(log, at) != 0:
        return False
    copy_ahead(log, at + _FIRST_WORD, packet, packet_at + _FIRST_WORD, length - _FIRST_WORD)
    put_i64_release(log, at, get_i64(packet, packet_at))
    return True
