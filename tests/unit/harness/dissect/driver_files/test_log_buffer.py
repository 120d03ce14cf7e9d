"""Log files: metadata, tails, the walk over a term, and invalid files."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.reader import load
from windtunnel.harness.dissect.driver_files import log_buffer
from windtunnel.harness.dissect.driver_files.log_buffer import (
    CLAIMED,
    CUT_SHORT,
    END_OF_TERM,
    MALFORMED,
    METADATA_LENGTH,
    NOTHING_YET,
    OVERRUN,
    LogBufferError,
    TermWalk,
    read_frame,
    read_log_buffer,
)

TERM = 1 << 16
LENGTH = 3 * TERM + METADATA_LENGTH


def made(*, term_length=TERM, initial_term_id=-3, length=LENGTH):
    content = bytearray(length)
    struct.pack_into("<i", content, length - METADATA_LENGTH + 264, initial_term_id)
    struct.pack_into("<i", content, length - METADATA_LENGTH + 276, term_length)
    return content


def opened(content):
    return read_log_buffer(lambda at, length: bytes(content[at : at + length]), len(content))


def put_frame(content, at, length, *, kind=1, term_id=-3, flags=0xC0):
    header = (length, 0, flags, kind, at % TERM, 77, 1001, term_id, at)
    struct.pack_into("<iBBHiiiiq", content, at, *header)


def walked(content, index=0, *, over_zeroes=False):
    walk = TermWalk(opened(content), index, over_zeroes=over_zeroes)
    return [(frame.offset, frame.frame_length) for frame in walk], (
        walk.ended_at,
        walk.ended_because,
    )


def test_the_metadata_of_a_real_publication_is_read():
    log = opened(load("clean", "publication-4.logbuffer"))
    wanted = {"initial_term_id": -3, "mtu_length": 1408, "term_length": TERM, "page_size": 4096}
    wanted |= {"active_term_count": 16, "is_connected": 1, "correlation_id": 4, "type": 1}
    wanted |= {"end_of_stream_position": (1 << 63) - 1, "linger_timeout_ns": 5_000_000_000}
    wanted |= {"untethered_linger_timeout_ns": 5_000_000_000, "signal_eos": 1, "sparse": 1}
    assert {name: log.metadata[name] for name in wanted} == wanted
    assert (log.active_term_index, log.default_header.term_id) == (1, -3)
    assert (log.default_header.flags, log.default_header.type) == (0xC0, 1)
    found = [(tail.term_id, tail.term_offset, tail.position) for tail in log.tails()]
    assert found == [(12, 66592, 1_048_576), (13, 10656, 1_059_232), (11, 67488, 983_040)]


def test_positions_survive_the_wrap_of_the_term_id():
    log = opened(made(initial_term_id=2**31 - 2))
    assert log.position(2**31 - 2, 64) == 64
    assert log.position(-(2**31), 96) == 2 * TERM + 96


@pytest.mark.parametrize("length", [0, 1, 100, 3 * TERM, LENGTH - 1])
def test_a_short_file_is_not_a_log(length):
    with pytest.raises(LogBufferError, match="expected at least 200704 bytes"):
        opened(made()[:length])


@pytest.mark.parametrize("term_length", [0, -1, 1 << 15, TERM + 32, 1 << 31 - 1])
def test_invalid_term_lengths_are_refused(term_length):
    with pytest.raises(LogBufferError, match=r"expected a power of two|truncated"):
        opened(made(term_length=term_length))


def test_terms_longer_than_the_file_are_refused():
    with pytest.raises(LogBufferError, match="truncated"):
        opened(made(term_length=2 * TERM))
    assert opened(made(term_length=2 * TERM, length=6 * TERM + METADATA_LENGTH))


def test_big_pages_leave_slack_before_the_metadata():
    assert opened(made(length=4 * TERM)).term_length == TERM


def test_a_term_is_walked_up_to_its_unwritten_part():
    content = made()
    put_frame(content, TERM, 33)
    put_frame(content, TERM + 64, 32, kind=0)
    assert walked(content, 1) == ([(0, 33), (64, 32)], (96, NOTHING_YET))
    assert walked(content) == ([], (0, NOTHING_YET))


def test_a_full_term_ends_there():
    content = made()
    put_frame(content, 0, TERM - 64)
    put_frame(content, TERM - 64, 64, kind=0)
    assert walked(content) == ([(0, TERM - 64), (TERM - 64, 64)], (TERM, END_OF_TERM))


@pytest.mark.parametrize(
    ("length", "kind", "because"),
    [
        (-64, 1, CLAIMED),
        (31, 1, MALFORMED),
        (64, 2, MALFORMED),
        (TERM - 31, 1, OVERRUN),
        (2**31 - 1, 1, OVERRUN),
    ],
)
def test_the_walk_ends_at_an_invalid_frame_with_the_reason(length, kind, because):
    content = made()
    put_frame(content, 0, 32)
    put_frame(content, 32, length, kind=kind)
    assert walked(content, over_zeroes=True) == ([(0, 32)], (32, because))


def test_a_gap_is_skipped_on_request():
    content = made()
    put_frame(content, 0, 64)
    put_frame(content, 4096, 64)
    assert walked(content) == ([(0, 64)], (64, NOTHING_YET))
    assert walked(content, over_zeroes=True) == ([(0, 64), (4096, 64)], (TERM, END_OF_TERM))


def test_a_file_that_shrinks_ends_the_walk():
    content = made()
    put_frame(content, 0, 64)
    log = opened(content)
    del content[80:]
    walk = TermWalk(log, 0)
    assert [frame.offset for frame in walk] == [0]
    assert (walk.ended_at, walk.ended_because) == (64, CUT_SHORT)
    assert read_frame(log, 0, 64) is None


def test_metadata_beyond_a_truncated_file_is_reported():
    with pytest.raises(LogBufferError, match="while it was being read"):
        read_log_buffer(lambda at, length: b"", LENGTH)


@given(
    words=st.lists(st.tuples(st.integers(0, LENGTH // 4 - 1), st.integers(0, 2**32 - 1))),
    over_zeroes=st.booleans(),
)
def test_arbitrary_bytes_have_a_result(words, over_zeroes):
    content = made()
    put_frame(content, 0, 96)
    for word, value in words:
        struct.pack_into("<I", content, word * 4, value)
    try:
        log = opened(content)
    except LogBufferError:
        return
    for index in range(log_buffer.TERM_COUNT):
        walk = TermWalk(log, index, over_zeroes=over_zeroes)
        offsets = [frame.offset for frame in walk]
        assert offsets == sorted(set(offsets))
        assert all(offset < log.term_length for offset in offsets)
        assert walk.ended_at <= log.term_length
