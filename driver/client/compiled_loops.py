"""Kernels for compiled loops, which read and write streams without Python between messages.

    @numba.njit(nogil=True)
    def total(blocks, length_limit):
        bytes_read = 0
        at, length = next_block(blocks, length_limit)
        while length > 0:
            bytes_read += length  # the frames are blocks.log[at : at + length]
            consume(blocks, length)
            at, length = next_block(blocks, length_limit)
        return bytes_read

    @numba.njit(nogil=True)
    def write(publication, message, count):
        position = 0
        for _ in range(count):
            position = offer(publication, message, 0, message.size, 0)
        return position

    image.run_loop(total, 1 << 16)
    publication.run_loop(write, message, 10)

A block is a run of whole frames, with their headers. A padding frame is a separate block. `consume`
publishes the position after the block, from which time the driver may overwrite it. Offers have the
results of `Publication.offer` and `Publication.offer_batch`.
"""

from typing import NamedTuple

import numpy as np

from windtunnel.driver.base.atomics import get_i64_acquire, put_i64_release
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import appender, reader
from windtunnel.driver.logbuffer import position as positions

BLOCK_READER = np.dtype(
    (
        np.record,
        [
            ("position", "i8"),  # stream position of the next block
            ("term_length", "i8"),
            ("bits", "i8"),  # log2 of the term length
            ("counter_at", "i8"),  # offset of the position counter in the values
        ],
    )
)


class Blocks(NamedTuple):
    """An image as the argument of a compiled loop."""

    reader: np.ndarray
    """BLOCK_READER[1]"""
    log: np.ndarray
    """uint8[n], the whole log"""
    values: np.ndarray
    """uint8[m], the values of all counters"""


@kernel
def next_block(blocks, length_limit):
    """Find the next block, up to the end of the term.

    Returns: (its offset in the log, its length), with a length of 0 if nothing is committed or the
             next frame is longer than `length_limit`
    """
    state = blocks.reader[0]
    offset = state.position & (state.term_length - 1)
    base = positions.index(state.position, state.bits) * state.term_length
    limit = min(offset + length_limit, state.term_length)
    return base + offset, reader.block(blocks.log, base, state.term_length, offset, limit) - offset


@kernel
def consume(blocks, length):
    """Move the position past `length` bytes, whole frames of the block that was found last.

    Memory: the position counter is released, because the loop has finished with these frames
    """
    state = blocks.reader[0]
    state.position += length
    put_i64_release(blocks.values, state.counter_at, state.position)


class PublicationLog(NamedTuple):
    """A publication as the argument of a compiled loop."""

    appender: np.ndarray
    """`driver.logbuffer.appender.APPENDER[1]`"""
    log: np.ndarray
    """uint8[n], the whole log"""
    values: np.ndarray
    """uint8[m], the values of all counters"""
    limit_at: int
    """Offset of the publication limit in the values."""


@kernel
def offer(publication, source, source_at, length, reserved_value):
    """Write one message: `length` bytes of `source`, uint8[n], from `source_at`."""
    limit = get_i64_acquire(publication.values, publication.limit_at)
    return appender.offer(
        publication.appender, publication.log, limit, source, source_at, length, reserved_value
    )


@kernel
def offer_batch(publication, source, source_at, lengths, first):
    """Write messages that are contiguous in `source`, uint8[n], until an offer fails.

    Shapes:  lengths int64[m]; message `first` begins at `source_at`
    Returns: (number of messages written, result of the last offer)
    """
    return appender.offer_batch(
        publication.appender, publication.log, publication.values, publication.limit_at,
        source, source_at, lengths, first, lengths.size - first,
    )  # fmt: skip
