"""Writing by publications: results, limits, ends of terms and streams, races."""

import struct
import threading

import numpy as np
import pytest

from tests.unit.driver.logbuffer.loops import publish_all
from windtunnel.driver.base.arith import I32_MAX, wrap_i32
from windtunnel.driver.kernels.jit import JIT_DISABLED
from windtunnel.driver.logbuffer import appender, descriptor, reader
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.driver.logbuffer.parameters import LogParameters, initialise
from windtunnel.driver.wire import data
from windtunnel.driver.wire import frame_type as types

TERM_LENGTH = 65536
META = 3 * TERM_LENGTH
UNLIMITED = 1 << 62
SHARED, EXCLUSIVE = descriptor.CONCURRENT_PUBLICATION, descriptor.EXCLUSIVE_PUBLICATION
SOURCE = (np.arange(16384) % 251).astype(np.uint8)
BOTH = pytest.mark.parametrize("kind", [SHARED, EXCLUSIVE])


def publication(kind: int, term_length: int = TERM_LENGTH, **changes: int) -> tuple:
    """A new log and the state of a publication over it."""
    values = {"initial_term_id": 7, "mtu_length": 1408} | changes
    log = np.zeros(3 * term_length + 4096, dtype=np.uint8)
    chosen = LogParameters(
        type=kind,
        correlation_id=1,
        session_id=-5,
        stream_id=1001,
        term_length=term_length,
        **values,
    )
    initialise(log, 3 * term_length, chosen)
    return appender.attach(log, 3 * term_length), log


def offer(state: np.ndarray, log: np.ndarray, length: int, limit: int = UNLIMITED) -> int:
    return int(appender.offer(state, log, limit, SOURCE, 0, length, 0))


def fill_to(state: np.ndarray, log: np.ndarray, offset: int) -> None:
    """Offer until the tail of the first term is at `offset`."""
    at = 0
    while at < offset:
        length = min(offset - at - 32, 1376)
        at = offer(state, log, length)
    assert at == offset


def raw_tail(log: np.ndarray, index: int) -> tuple[int, int]:
    (raw,) = struct.unpack_from("<q", log, META + 8 * index)
    return raw >> 32, raw & 0xFFFFFFFF


def frame_at(log: np.ndarray, at: int) -> tuple[int, int, int]:
    """(length, flags, type) of a frame."""
    length, _, flags, kind = struct.unpack_from("<iBBH", log, at)
    return length, flags, kind


@BOTH
def test_a_message_becomes_a_frame(kind: int) -> None:
    state, log = publication(kind)
    assert appender.offer(state, log, UNLIMITED, SOURCE, 3, 100, -77) == 160
    expected = struct.pack("<iBBHiiiiq", 132, 0, 0xC0, 1, 0, -5, 1001, 7, -77) + bytes(
        SOURCE[3:103]
    )
    assert bytes(log[:160]) == expected.ljust(160, b"\0")
    assert raw_tail(log, 0) == (7, 160)


@BOTH
def test_a_long_message_becomes_several_frames(kind: int) -> None:
    state, log = publication(kind)
    assert appender.offer(state, log, UNLIMITED, SOURCE, 0, 3000, 9) == 3104
    assert [frame_at(log, at) for at in (0, 1408, 2816)] == [
        (1408, 0x80, 1),
        (1408, 0x00, 1),
        (280, 0x40, 1),
    ]
    payload = b"".join(
        bytes(log[at + 32 : at + n]) for at, n in ((0, 1408), (1408, 1408), (2816, 280))
    )
    assert payload == bytes(SOURCE[:3000])
    assert [data.reserved_value(log, at) for at in (0, 1408, 2816)] == [9, 9, 9]
    assert [data.term_offset(log, at) for at in (0, 1408, 2816)] == [0, 1408, 2816]


@BOTH
@pytest.mark.parametrize(
    ("length", "expected"), [(0, 32), (1, 64), (32, 64), (1376, 1408), (1377, 1472), (8192, 8384)]
)
def test_framed_length_of_a_message(kind: int, length: int, expected: int) -> None:
    state, log = publication(kind)
    assert offer(state, log, length) == expected
    assert descriptor.producer_position(log, META) == expected


@BOTH
def test_invalid_offers(kind: int) -> None:
    state, log = publication(kind)
    assert offer(state, log, 8193) == result.ERROR
    assert offer(state, log, -1) == result.ERROR
    assert appender.offer(state, log, UNLIMITED, SOURCE, SOURCE.size - 9, 10, 0) == result.ERROR
    assert appender.offer(state, log, UNLIMITED, SOURCE, -1, 10, 0) == result.ERROR
    assert appender.claim(state, log, UNLIMITED, 1377) == result.ERROR
    assert appender.claim(state, log, UNLIMITED, -1) == result.ERROR
    assert not log[:META].any()
    assert raw_tail(log, 0) == (7, 0)


@BOTH
def test_the_limit_is_compared_with_the_beginning_of_a_message(kind: int) -> None:
    state, log = publication(kind)
    descriptor.put_is_connected_release(log, META, True)
    assert offer(state, log, 5000, limit=1) > 0
    end = int(descriptor.producer_position(log, META))
    assert offer(state, log, 1, limit=end) == result.BACK_PRESSURED
    descriptor.put_is_connected_release(log, META, False)
    assert offer(state, log, 1, limit=end) == result.NOT_CONNECTED
    assert appender.claim(state, log, end, 1) == result.NOT_CONNECTED
    assert descriptor.producer_position(log, META) == end
    assert offer(state, log, 1, limit=end + 1) == end + 64


@BOTH
def test_a_message_that_does_not_fit_pads_and_rotates(kind: int) -> None:
    state, log = publication(kind)
    fill_to(state, log, TERM_LENGTH - 288)
    assert offer(state, log, 300) == result.ADMIN_ACTION
    assert frame_at(log, TERM_LENGTH - 288) == (288, 0xC0, 0)
    assert raw_tail(log, 0) == (7, TERM_LENGTH - 288 + 352)
    assert raw_tail(log, 1) == (8, 0)
    assert descriptor.producer_position(log, META) == TERM_LENGTH
    assert offer(state, log, 300) == TERM_LENGTH + 352
    assert data.term_id(log, TERM_LENGTH) == 8


@BOTH
def test_a_message_that_fills_the_term_exactly_needs_no_padding(kind: int) -> None:
    state, log = publication(kind)
    fill_to(state, log, TERM_LENGTH)
    assert offer(state, log, 10) == result.ADMIN_ACTION
    assert not log[TERM_LENGTH : 2 * TERM_LENGTH].any()
    assert offer(state, log, 10) == TERM_LENGTH + 64


@BOTH
def test_a_fragmented_message_never_straddles_terms(kind: int) -> None:
    state, log = publication(kind)
    fill_to(state, log, TERM_LENGTH - 1408)
    assert offer(state, log, 1377) == result.ADMIN_ACTION
    assert frame_at(log, TERM_LENGTH - 1408) == (1408, 0xC0, 0)
    assert offer(state, log, 1377) == TERM_LENGTH + 1472


@BOTH
def test_the_stream_ends_after_two_billion_terms(kind: int) -> None:
    initial = -9
    last = wrap_i32(initial + I32_MAX)
    state, log = publication(
        kind, initial_term_id=initial, start_term_id=last, start_term_offset=TERM_LENGTH - 96
    )
    end = (TERM_LENGTH << 31) - 96
    assert descriptor.producer_position(log, META) == end
    assert offer(state, log, 0) == end + 32
    assert offer(state, log, 100) == result.MAX_POSITION_EXCEEDED
    index = I32_MAX % 3
    assert frame_at(log, index * TERM_LENGTH + TERM_LENGTH - 64) == (64, 0xC0, 0)
    before = log.copy()
    assert offer(state, log, 1) == result.MAX_POSITION_EXCEEDED
    np.testing.assert_array_equal(log[:META], before[:META])
    assert offer(state, log, 1, limit=0) == result.MAX_POSITION_EXCEEDED
    assert descriptor.active_term_count_acquire(log, META) == I32_MAX


def test_a_concurrent_rotation_is_admin_action() -> None:
    state, log = publication(SHARED)
    struct.pack_into("<i", log, META + 24, 1)
    assert offer(state, log, 10) == result.ADMIN_ACTION
    assert not log[:META].any()


def test_a_second_claimer_beyond_the_end_writes_nothing() -> None:
    state, log = publication(SHARED)
    struct.pack_into("<q", log, META, (7 << 32) | (TERM_LENGTH + 64))
    assert offer(state, log, 10) == result.ADMIN_ACTION
    assert not log[:META].any()
    assert raw_tail(log, 1) == (8, 0)


def test_a_misaligned_tail_is_an_error() -> None:
    state, log = publication(SHARED)
    struct.pack_into("<q", log, META, (7 << 32) | 17)
    assert offer(state, log, 10) == result.ERROR
    assert not log[:META].any()


@BOTH
def test_pieces_make_the_same_frames_as_one_message(kind: int) -> None:
    state, log = publication(kind)
    twin, expected = publication(kind)
    ranges = np.array([[10, 5], [100, 0], [4000, 3000], [0, 1376]], dtype=np.int64)
    joined = np.concatenate([SOURCE[at : at + length] for at, length in ranges])
    got = appender.offer_vectored(state, log, UNLIMITED, SOURCE, ranges, 5)
    assert got == appender.offer(twin, expected, UNLIMITED, joined, 0, joined.size, 5)
    np.testing.assert_array_equal(log, expected)
    none = np.zeros((0, 2), dtype=np.int64)
    assert appender.offer_vectored(state, log, UNLIMITED, SOURCE, none, 0) == got + 32


@BOTH
@pytest.mark.parametrize("bad", [[-1, 4], [16380, 5], [0, -1], [0, 8193]])
def test_pieces_outside_the_source_are_refused(kind: int, bad: list[int]) -> None:
    state, log = publication(kind)
    ranges = np.array([[0, 4], bad], dtype=np.int64)
    assert appender.offer_vectored(state, log, UNLIMITED, SOURCE, ranges, 0) == result.ERROR
    assert not log[:META].any()


@BOTH
def test_a_claim_is_invisible_until_it_is_committed(kind: int) -> None:
    state, log = publication(kind)
    assert appender.claim(state, log, UNLIMITED, 100) == 160
    at, length = int(state[0].claim_at), int(state[0].claim_length)
    assert (at, length) == (0, 132)
    assert frame_at(log, 0) == (-132, 0xC0, 1)
    assert reader.committed_end(log, 0, TERM_LENGTH, 0) == -1
    log[at + 32 : at + length] = 7
    assert appender.commit(log, at)
    assert frame_at(log, 0) == (132, 0xC0, 1)
    assert not appender.commit(log, at)
    assert offer(state, log, 10) == 224


@BOTH
def test_an_aborted_claim_is_padding(kind: int) -> None:
    state, log = publication(kind)
    assert appender.claim(state, log, UNLIMITED, 0) == 32
    assert appender.claim(state, log, UNLIMITED, 1) == 96
    assert appender.abort(log, int(state[0].claim_at))
    assert frame_at(log, 32) == (33, 0xC0, 0)
    assert not appender.abort(log, int(state[0].claim_at))
    assert frame_at(log, 0) == (-32, 0xC0, 1)


def test_padding_on_demand_is_for_exclusive_publications() -> None:
    state, log = publication(EXCLUSIVE)
    assert appender.append_padding(state, log, UNLIMITED, 1000) == 1056
    assert frame_at(log, 0) == (1032, 0xC0, 0)
    assert not log[32:META].any()
    assert appender.append_padding(state, log, UNLIMITED, 8193) == result.ERROR
    assert appender.append_padding(state, log, 1056, 0) == result.NOT_CONNECTED
    shared, other = publication(SHARED)
    assert appender.append_padding(shared, other, UNLIMITED, 1000) == result.ERROR
    assert not other[:META].any()


@BOTH
def test_a_batch_is_written_until_an_offer_fails(kind: int) -> None:
    state, log = publication(kind)
    values = np.zeros(256, dtype=np.uint8)
    lengths = np.array([10, 2000, 0, 500], dtype=np.int64)
    struct.pack_into("<q", values, 128, 2176)
    sent = appender.offer_batch(state, log, values, 128, SOURCE, 0, lengths, 0, 4)
    assert sent == (3, result.NOT_CONNECTED)
    struct.pack_into("<q", values, 128, UNLIMITED)
    sent = appender.offer_batch(state, log, values, 128, SOURCE, 2010, lengths, 3, 9)
    assert sent == (1, 2176 + 544)
    assert bytes(log[2176 + 32 : 2176 + 532]) == bytes(SOURCE[2010:2510])
    assert appender.offer_batch(state, log, values, 128, SOURCE, 0, lengths, 4, 1) == (
        0,
        result.ERROR,
    )


def test_attaching_again_continues_at_the_tail() -> None:
    state, log = publication(EXCLUSIVE)
    fill_to(state, log, TERM_LENGTH - 32)
    assert offer(state, log, 10) == result.ADMIN_ACTION
    end = offer(state, log, 10)
    assert offer(appender.attach(log, META), log, 10) == end + 64


def race(term_length: int, lengths: list[np.ndarray]) -> np.ndarray:
    """The log after several publishers concurrently wrote messages with their own number."""
    _, log = publication(SHARED, term_length, mtu_length=64)
    values = np.full(8, 0x7F, dtype=np.uint8)
    start, outcomes = np.zeros(8, dtype=np.uint8), []

    def publish(worker: int) -> None:
        own, mine = appender.attach(log, 3 * term_length), lengths[worker]
        source = np.full(int(mine.sum()), worker + 1, dtype=np.uint8)
        outcomes.append(publish_all(own, log, values, source, mine, start, len(lengths)))

    threads = [threading.Thread(target=publish, args=(w,)) for w in range(len(lengths))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [0] * len(lengths)
    return log


def messages_of(log: np.ndarray, term_length: int) -> tuple[np.ndarray, np.ndarray]:
    """(publisher, length) of every message of a log that did not wrap."""
    room, found = reader.fragments(term_length // 32), []
    for base in range(0, 3 * term_length, term_length):
        count, _ = reader.poll(log, base, term_length, 0, term_length, room, room.size)
        found.append(room[:count].copy())
    fragments = np.concatenate(found)
    owner = log[fragments["at"]]
    np.testing.assert_array_equal(owner, log[fragments["at"] + fragments["length"] - 1])
    begins = (fragments["frame_flags"] & types.BEGIN) != 0
    ends = (fragments["frame_flags"] & types.END) != 0
    assert begins[0]
    np.testing.assert_array_equal(begins[1:], ends[:-1])
    first = np.flatnonzero(begins)
    np.testing.assert_array_equal(owner, np.repeat(owner[first], np.diff([*first, owner.size])))
    return owner[first], np.add.reduceat(fragments["length"], first)


def test_racing_publishers_lose_nothing_and_mix_nothing() -> None:
    term_length, rounds = 1 << 20, 1 if JIT_DISABLED else 25
    count = 100 if JIT_DISABLED else 8000
    lengths = [1 + (worker + np.arange(count) * 37) % 120 for worker in range(2)]
    # One round may be over before the other thread is given a processor.
    for _ in range(rounds):
        owners, sizes = messages_of(race(term_length, lengths), term_length)
        for worker, expected in enumerate(lengths):
            np.testing.assert_array_equal(sizes[owners == worker + 1], expected)
