"""Frames in a term: their alignment, their states and their headers.

The first four bytes of a slot are its state:

    0          empty
    negative   claimed: a writer is filling this many bytes
    positive   committed: the frame is readable and never changes again

Field offsets are those of `driver.wire.data`, because a term holds the bytes that are sent.
Source: driver-protocol 2.3, 2.6.
"""

from windtunnel.driver.base.arith import align
from windtunnel.driver.base.atomics import (
    get_i32,
    get_i32_acquire,
    put_i32,
    put_i32_release,
    put_i64,
    put_i64_release,
    put_u8,
    put_u16,
    release_fence,
)
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.wire import data, header
from windtunnel.driver.wire import frame_type as types

FRAME_ALIGNMENT = data.ALIGNMENT
HEADER_LENGTH = data.HEADER_LENGTH
assert HEADER_LENGTH % FRAME_ALIGNMENT == 0

DEFAULT_HEADER = 320
"""Offset of the log's header template in the metadata."""


@kernel
def aligned(frame_length):
    """Return the number of bytes that a frame occupies in its term, including alignment."""
    return align(frame_length, FRAME_ALIGNMENT)


@kernel
def frame_length_acquire(log, at):
    """Return the frame length field at offset `at`, with acquire semantics. It is negative while
    the frame is claimed, and 0 in free space.
    """
    return get_i32_acquire(log, at)


@kernel
def publish(log, at, frame_length):
    """Commit a frame by storing its positive length with release semantics."""
    put_i32_release(log, at, frame_length)


@kernel
def frame_type(log, at):
    return header.frame_type(log, at)


@kernel
def flags(log, at):
    return header.flags(log, at)


@kernel
def set_type(log, at, type_code):
    put_u16(log, at + header.TYPE, type_code)


@kernel
def set_flags(log, at, flag_bits):
    put_u8(log, at + header.FLAGS, flag_bits)


@kernel
def first_word(frame_length, upper):
    """Combine a frame length and bytes 4 to 8 (`upper`) into the first eight bytes of a header."""
    return (frame_length & 0xFFFFFFFF) | (upper << 32)


@kernel
def write_header(log, at, meta_at, frame_length, term_id, term_offset):
    """Claim `frame_length` bytes at offset `at` and fill the frame header from the log's default
    header.

    Memory: the negative length is stored first, so an unblocker can read the length of the claim.
            The reserved value is not changed; `publish` makes the frame readable.
    """
    template = meta_at + DEFAULT_HEADER
    put_i64_release(log, at, first_word(-frame_length, get_i32(log, template + header.VERSION)))
    release_fence()
    fill_header(log, at, meta_at, term_id, term_offset)


@kernel
def fill_header(log, at, meta_at, term_id, term_offset):
    """Fill header bytes 8 to 24 from the log's default header, the term id and the term offset."""
    template = meta_at + DEFAULT_HEADER
    put_i32(log, at + data.TERM_OFFSET, term_offset)
    put_i32(log, at + data.SESSION_ID, get_i32(log, template + data.SESSION_ID))
    put_i32(log, at + data.STREAM_ID, get_i32(log, template + data.STREAM_ID))
    put_i32(log, at + data.TERM_ID, term_id)


@kernel
def write_padding(log, at, meta_at, frame_length, term_id, term_offset):
    """Write and commit a padding frame of `frame_length` bytes. Only the header is written."""
    write_header(log, at, meta_at, frame_length, term_id, term_offset)
    set_type(log, at, types.PAD)
    publish(log, at, frame_length)


@kernel
def overwrite_with_padding(log, at, meta_at, frame_length, term_id, term_offset):
    """Write a committed padding frame at offset `at`, regardless of the current content.

    No writer may complete the slot afterwards. Unlike `write_padding`, this stores no claim first:
    the slot becomes readable in one step.
    """
    put_i32(log, at + header.VERSION, get_i32(log, meta_at + DEFAULT_HEADER + header.VERSION))
    set_type(log, at, types.PAD)
    fill_header(log, at, meta_at, term_id, term_offset)
    put_i64(log, at + data.RESERVED_VALUE, 0)
    publish(log, at, frame_length)
