"""Arbitrary terms, corrupted ones included: the kernels agree with their reference
implementations.
"""

import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import term as naive
from windtunnel.driver.logbuffer import (
    cleaner,
    descriptor,
    gap_filler,
    gap_scanner,
    reader,
    rebuilder,
    scanner,
    unblocker,
)
from windtunnel.driver.logbuffer.parameters import LogParameters, initialise

# The kernels accept any term length; in a short one, every frame may reach an edge.
TERM_LENGTH = 1024
BASE = 64 * 1024
OFFSETS = st.integers(0, TERM_LENGTH // 32).map(lambda n: n * 32)
LENGTHS = st.one_of(st.integers(1, 200), st.sampled_from([32, 64, 1024, 1056, 0x7FFFFFFF]))


def metadata() -> np.ndarray:
    log = np.zeros(3 * BASE + 4096, dtype=np.uint8)
    chosen = LogParameters(
        type=descriptor.IMAGE,
        correlation_id=1,
        session_id=-2,
        stream_id=3,
        initial_term_id=4,
        term_length=BASE,
        mtu_length=1408,
    )
    initialise(log, 3 * BASE, chosen)
    return log


LOG, META = metadata(), 3 * BASE


@st.composite
def terms(draw: st.DrawFn) -> bytearray:
    """Frames, claims and gaps in any order; sometimes a slot is overwritten with arbitrary
    bytes."""
    term, offset = bytearray(TERM_LENGTH), 0
    while offset < TERM_LENGTH and draw(st.integers(0, 12)) > 0:
        state = draw(st.sampled_from(["data", "data", "data", "pad", "claim", "hole"]))
        length = draw(LENGTHS if draw(st.integers(0, 9)) == 0 else st.integers(1, 200))
        if state != "hole":
            kind, sign = (0 if state == "pad" else 1), (-1 if state == "claim" else 1)
            fields = (sign * length, 0, 0xC0, kind, offset, -2, 3, 4, draw(st.integers(0, 9)))
            struct.pack_into("<iBBHiiiiq", term, offset, *fields)
        offset += naive.aligned(length)
    for at, value in draw(
        st.lists(st.tuples(OFFSETS, st.binary(min_size=4, max_size=8)), max_size=2)
    ):
        if at < TERM_LENGTH:
            term[at : at + len(value)] = value
    return term


def log_with(term: bytearray) -> np.ndarray:
    log = LOG.copy()
    log[BASE : BASE + TERM_LENGTH] = np.frombuffer(bytes(term), dtype=np.uint8)
    return log


def untouched_elsewhere(log: np.ndarray) -> bool:
    end = BASE + TERM_LENGTH
    return bool((log[:BASE] == LOG[:BASE]).all() and (log[end:] == LOG[end:]).all())


@given(terms(), OFFSETS, st.integers(0, 1100))
def test_scanning(term: bytearray, offset: int, max_length: int) -> None:
    got = scanner.scan(log_with(term), BASE, TERM_LENGTH, offset, max_length)
    assert got == naive.scan(term, offset, max_length)


@given(terms(), OFFSETS, OFFSETS)
def test_finding_a_hole(term: bytearray, offset: int, limit: int) -> None:
    assert gap_scanner.scan(log_with(term), BASE, offset, limit) == naive.gap(term, offset, limit)


@given(terms(), OFFSETS, OFFSETS, st.integers(0, 12), st.booleans())
def test_polling(term: bytearray, offset: int, limit: int, most: int, with_padding: bool) -> None:
    poll = reader.poll_frames if with_padding else reader.poll
    log, room = log_with(term), reader.fragments(10)
    count, stopped = poll(log, BASE, TERM_LENGTH, offset, limit, room, most)
    frames, expected = naive.poll(term, offset, limit, min(most, 10), with_padding=with_padding)
    assert stopped == expected
    got = [(f.term_offset, f.length, f.frame_type, f.end_offset) for f in room[:count]]
    assert got == [(f.offset, max(f.length - 32, 0), f.kind, f.end) for f in frames]
    assert all(f.at == BASE + f.term_offset + 32 for f in room[:count])


@given(terms(), OFFSETS, st.integers(0, TERM_LENGTH))
def test_blocks(term: bytearray, offset: int, limit: int) -> None:
    got = reader.block(log_with(term), BASE, TERM_LENGTH, offset, limit)
    assert got == naive.block(term, offset, limit)


@given(terms(), st.data())
def test_filling_a_hole(term: bytearray, draws: st.DataObject) -> None:
    offset = draws.draw(st.integers(0, TERM_LENGTH // 32 - 1)) * 32
    length = draws.draw(st.integers(1, (TERM_LENGTH - offset) // 32)) * 32
    log = log_with(term)
    done = gap_filler.try_fill(log, BASE, META, -5, offset, length)
    assert done == naive.fill(term, -2, 3, -5, offset, length)
    assert bytes(log[BASE : BASE + TERM_LENGTH]) == bytes(term)
    assert untouched_elsewhere(log)


@given(terms(), st.data())
def test_inserting_and_cleaning(term: bytearray, draws: st.DataObject) -> None:
    offset = draws.draw(st.integers(0, TERM_LENGTH // 32 - 1)) * 32
    packet = draws.draw(st.binary(min_size=32, max_size=TERM_LENGTH - offset))
    log = log_with(term)
    source = np.frombuffer(b"\xee" * 5 + packet, dtype=np.uint8).copy()
    done = rebuilder.insert(log, BASE, offset, source, 5, len(packet))
    assert done == naive.insert(term, offset, packet)
    assert bytes(log[BASE : BASE + TERM_LENGTH]) == bytes(term)
    cleaner.clean(log, BASE, offset, len(packet))
    term[offset : offset + len(packet)] = bytes(len(packet))
    assert bytes(log[BASE : BASE + TERM_LENGTH]) == bytes(term)
    assert untouched_elsewhere(log)


@given(terms(), OFFSETS, OFFSETS)
def test_unblocking(term: bytearray, offset: int, tail: int) -> None:
    log, names = log_with(term), {0: "", 1: "unblocked", 2: "unblocked to end"}
    status = unblocker.unblock_term(log, BASE, META, TERM_LENGTH, offset, tail, -5)
    assert names[status] == naive.unblock(term, -2, 3, -5, offset, tail)
    assert bytes(log[BASE : BASE + TERM_LENGTH]) == bytes(term)
    assert untouched_elsewhere(log)
