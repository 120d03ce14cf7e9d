"""Converts between stream positions and pairs of term id and term offset.

    position = (term id - initial term id) * term length + term offset

Term ids are 32 bits and wrap; only their difference is meaningful. `bits` is log2 of the term
length.
Source: driver-protocol 2.4.
"""

from windtunnel.driver.base.arith import wrap_i32
from windtunnel.driver.kernels.jit import kernel

PARTITION_COUNT = 3
TERM_LENGTH_MIN = 64 * 1024
TERM_LENGTH_MAX = 1024 * 1024 * 1024
MESSAGE_LENGTH_MAX = 16 * 1024 * 1024


@kernel
def of(term_id, term_offset, bits, initial_term_id):
    """Return the stream position of an offset in a term."""
    return (wrap_i32(term_id - initial_term_id) << bits) + term_offset


@kernel
def term_id(position, bits, initial_term_id):
    return wrap_i32((position >> bits) + initial_term_id)


@kernel
def term_offset(position, term_length):
    return position & (term_length - 1)


@kernel
def index(position, bits):
    """Return the index, 0 to 2, of the term that contains this position."""
    return (position >> bits) % PARTITION_COUNT


@kernel
def index_of_count(count):
    """Return the index, 0 to 2, of the active term after `count` rotations."""
    return count % PARTITION_COUNT


@kernel
def max_possible(term_length):
    """Return the highest position that a stream with this term length can reach: the end of its
    last term.
    """
    return term_length << 31


@kernel
def max_message_length(term_length):
    return min(term_length // 8, MESSAGE_LENGTH_MAX)
