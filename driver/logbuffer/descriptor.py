"""Log metadata: the last 4096 bytes of a log file.

    0       8       16      24    28        128      136       140        144     256
    +-------+-------+-------+-----+---------+--------+---------+----------+-------+----
    | tail 0| tail 1| tail 2|count| (zero)  | end of | is      | active   | (zero)| written once ...
    |       |       |       |     |         | stream |connected|transports|       |
    +-------+-------+-------+-----+---------+--------+---------+----------+-------+----

A raw tail has the term id in its upper and the offset in its lower 32 bits; the offset of a shared
tail may exceed the term. The three tails always have term ids n, n - 2, n - 1, starting at the
active one. Publishers advance the tails and the term count; the driver writes the other fields.
Fields from 256 on are written before the file name is sent to clients, except for the revoked flag.
Source: driver-protocol 2.1, 2.2, 2.5.
"""

from windtunnel.driver.base.arith import align, bits_to_shift, is_power_of_two, wrap_i32
from windtunnel.driver.base.atomics import (
    cas_i32,
    cas_i64,
    get_i32,
    get_i32_acquire,
    get_i64,
    get_i64_acquire,
    get_u8,
    put_i32_release,
    put_i64,
    put_i64_release,
    put_u8_release,
)
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import frame, position
from windtunnel.driver.wire import header, setup

TERM_TAILS = 0
ACTIVE_TERM_COUNT = 24
END_OF_STREAM_POSITION = 128
IS_CONNECTED = 136
ACTIVE_TRANSPORT_COUNT = 140
CORRELATION_ID = 256
INITIAL_TERM_ID = 264
DEFAULT_HEADER_LENGTH = 268
MTU_LENGTH = 272
TERM_LENGTH = 276
PAGE_SIZE = 280
PUBLICATION_WINDOW_LENGTH = 284
RECEIVER_WINDOW_LENGTH = 288
SOCKET_SNDBUF_LENGTH = 292
OS_DEFAULT_SOCKET_SNDBUF_LENGTH = 296
OS_MAX_SOCKET_SNDBUF_LENGTH = 300
SOCKET_RCVBUF_LENGTH = 304
OS_DEFAULT_SOCKET_RCVBUF_LENGTH = 308
OS_MAX_SOCKET_RCVBUF_LENGTH = 312
MAX_RESEND = 316
DEFAULT_HEADER = frame.DEFAULT_HEADER
ENTITY_TAG = 448
RESPONSE_CORRELATION_ID = 456
LINGER_TIMEOUT_NS = 464
UNTETHERED_WINDOW_LIMIT_TIMEOUT_NS = 472
UNTETHERED_RESTING_TIMEOUT_NS = 480
GROUP = 488
IS_RESPONSE = 489
REJOIN = 490
RELIABLE = 491
SPARSE = 492
SIGNAL_EOS = 493
SPIES_SIMULATE_CONNECTION = 494
TETHER = 495
IS_PUBLICATION_REVOKED = 496
TYPE = 497
UNTETHERED_LINGER_TIMEOUT_NS = 500  # not 8-aligned in Aeron's format
METADATA_LENGTH = 4096
assert MAX_RESEND + 4 == DEFAULT_HEADER

CONCURRENT_PUBLICATION = 0
EXCLUSIVE_PUBLICATION = 1
IMAGE = 2

PAGE_SIZE_MIN = 4096
PAGE_SIZE_MAX = 1024 * 1024 * 1024

OK = 0
BAD_FILE_LENGTH = -1
BAD_TERM_LENGTH = -2
BAD_PAGE_SIZE = -3
BAD_HEADER_LENGTH = -4
BAD_MTU_LENGTH = -5
BAD_TYPE = -6


@kernel
def log_length(term_length, page_size):
    """Return the length of a log file, rounded up to whole pages."""
    return align(position.PARTITION_COUNT * term_length + METADATA_LENGTH, page_size)


@kernel
def meta_at(log_length):
    """Return the offset of the metadata, which is always at the end of the file."""
    return log_length - METADATA_LENGTH


@kernel
def pack_tail(term_id, term_offset):
    return (term_id << 32) | (term_offset & 0xFFFFFFFF)


@kernel
def tail_term_id(raw_tail):
    return raw_tail >> 32


@kernel
def tail_offset(raw_tail, term_length):
    """Return the term offset that a raw tail contains, or the term length if that is lower."""
    return min(raw_tail & 0xFFFFFFFF, term_length)


@kernel
def raw_tail_acquire(log, meta_at, index):
    return get_i64_acquire(log, meta_at + TERM_TAILS + 8 * index)


@kernel
def put_raw_tail_release(log, meta_at, index, raw_tail):
    put_i64_release(log, meta_at + TERM_TAILS + 8 * index, raw_tail)


@kernel
def active_term_count_acquire(log, meta_at):
    return get_i32_acquire(log, meta_at + ACTIVE_TERM_COUNT)


@kernel
def end_of_stream_position_acquire(log, meta_at):
    return get_i64_acquire(log, meta_at + END_OF_STREAM_POSITION)


@kernel
def put_end_of_stream_position_release(log, meta_at, end_position):
    put_i64_release(log, meta_at + END_OF_STREAM_POSITION, end_position)


@kernel
def is_connected_acquire(log, meta_at):
    return get_i32_acquire(log, meta_at + IS_CONNECTED) == 1


@kernel
def put_is_connected_release(log, meta_at, is_connected):
    put_i32_release(log, meta_at + IS_CONNECTED, 1 if is_connected else 0)


@kernel
def active_transport_count_acquire(log, meta_at):
    return get_i32_acquire(log, meta_at + ACTIVE_TRANSPORT_COUNT)


@kernel
def put_active_transport_count_release(log, meta_at, count):
    put_i32_release(log, meta_at + ACTIVE_TRANSPORT_COUNT, count)


@kernel
def is_publication_revoked(log, meta_at):
    return get_u8(log, meta_at + IS_PUBLICATION_REVOKED) == 1


@kernel
def put_is_publication_revoked_release(log, meta_at):
    """Mark the publication as revoked in the log metadata. The flag is never cleared."""
    put_u8_release(log, meta_at + IS_PUBLICATION_REVOKED, 1)


@kernel
def correlation_id(log, meta_at):
    return get_i64(log, meta_at + CORRELATION_ID)


@kernel
def initial_term_id(log, meta_at):
    return get_i32(log, meta_at + INITIAL_TERM_ID)


@kernel
def mtu_length(log, meta_at):
    return get_i32(log, meta_at + MTU_LENGTH)


@kernel
def term_length(log, meta_at):
    return get_i32(log, meta_at + TERM_LENGTH)


@kernel
def page_size(log, meta_at):
    return get_i32(log, meta_at + PAGE_SIZE)


@kernel
def publication_window_length(log, meta_at):
    return get_i32(log, meta_at + PUBLICATION_WINDOW_LENGTH)


@kernel
def session_id(log, meta_at):
    return get_i32(log, meta_at + DEFAULT_HEADER + 12)


@kernel
def stream_id(log, meta_at):
    return get_i32(log, meta_at + DEFAULT_HEADER + 16)


@kernel
def log_type(log, meta_at):
    return get_u8(log, meta_at + TYPE)


@kernel
def check_log(log, meta_at):
    """Check that a mapped file is a valid log before any of its values is used.

    Shapes:  log uint8[n], the whole file
    Returns: OK, or the first of BAD_FILE_LENGTH, BAD_TERM_LENGTH, BAD_PAGE_SIZE, BAD_HEADER_LENGTH,
             BAD_MTU_LENGTH, BAD_TYPE that applies; after OK every term lies inside the array
    """
    if meta_at < 0 or meta_at + METADATA_LENGTH != log.size:
        return BAD_FILE_LENGTH
    length = term_length(log, meta_at)
    if length < position.TERM_LENGTH_MIN or length > position.TERM_LENGTH_MAX:
        return BAD_TERM_LENGTH
    if not is_power_of_two(length):
        return BAD_TERM_LENGTH
    page = page_size(log, meta_at)
    if page < PAGE_SIZE_MIN or page > PAGE_SIZE_MAX or not is_power_of_two(page):
        return BAD_PAGE_SIZE
    if log_length(length, page) != log.size:
        return BAD_FILE_LENGTH
    if get_i32(log, meta_at + DEFAULT_HEADER_LENGTH) != frame.HEADER_LENGTH:
        return BAD_HEADER_LENGTH
    mtu = mtu_length(log, meta_at)
    # With an MTU of only a header no frame could carry payload, so an offer would never end.
    if mtu <= frame.HEADER_LENGTH or mtu > setup.MTU_LENGTH_MAX or mtu % header.ALIGNMENT != 0:
        return BAD_MTU_LENGTH
    return OK if log_type(log, meta_at) <= IMAGE else BAD_TYPE


@kernel
def initialise_tails(log, meta_at, initial_term_id, term_id, term_offset):
    """Initialise the tails and the active term count of a log that begins at the given term id and
    offset.
    """
    count = wrap_i32(term_id - initial_term_id)
    active = position.index_of_count(count)
    put_i64(log, meta_at + TERM_TAILS + 8 * active, pack_tail(term_id, term_offset))
    for step in range(1, position.PARTITION_COUNT):
        index = position.index_of_count(count + step)
        earlier = wrap_i32(term_id + step - position.PARTITION_COUNT)
        put_i64(log, meta_at + TERM_TAILS + 8 * index, pack_tail(earlier, 0))
    put_i32_release(log, meta_at + ACTIVE_TERM_COUNT, count)


@kernel
def producer_position(log, meta_at):
    """Return the position up to which publishers have claimed space, limited to the end of the
    active term.
    """
    return claimed_position(log, meta_at, term_length(log, meta_at), initial_term_id(log, meta_at))


@kernel
def claimed_position(log, meta_at, term_length, initial_term_id):
    """Return the position up to which publishers have claimed space, given the driver's values of
    term length and initial term id.

    Clients may have overwritten both in the log. They also write the tails and the term count: an
    offset beyond the term counts as its end, and a term before the initial one as the start of the
    stream.
    """
    count = active_term_count_acquire(log, meta_at)
    raw_tail = raw_tail_acquire(log, meta_at, position.index_of_count(count))
    offset = tail_offset(raw_tail, term_length)
    bits = bits_to_shift(term_length)
    return max(0, position.of(tail_term_id(raw_tail), offset, bits, initial_term_id))


@kernel
def rotate(log, meta_at, count, term_id):
    """Activate the next term. Several publishers may try this at the same time.

    Memory:  compare-and-set on the next tail, then on the count
    Returns: whether this call changed the term count
    """
    next_term_id = wrap_i32(term_id + 1)
    next_count = wrap_i32(count + 1)
    index = position.index_of_count(next_count)
    expected = wrap_i32(next_term_id - position.PARTITION_COUNT)
    # The CAS fails only if another publisher has changed the tail, so some publisher makes
    # progress.
    while True:
        raw_tail = raw_tail_acquire(log, meta_at, index)
        if tail_term_id(raw_tail) != expected:
            break
        if cas_i64(log, meta_at + TERM_TAILS + 8 * index, raw_tail, pack_tail(next_term_id, 0)):
            break
    return cas_i32(log, meta_at + ACTIVE_TERM_COUNT, count, next_count)


@kernel
def rotate_exclusive(log, meta_at, count, term_id):
    """Activate the next term of an exclusive publication."""
    next_count = wrap_i32(count + 1)
    index = position.index_of_count(next_count)
    put_i64(log, meta_at + TERM_TAILS + 8 * index, pack_tail(wrap_i32(term_id + 1), 0))
    put_i32_release(log, meta_at + ACTIVE_TERM_COUNT, next_count)
