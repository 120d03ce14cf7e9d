"""Metadata: sizes, tails, rotation, and checks of a mapped file."""

import struct

import numpy as np
import pytest

from windtunnel.driver.base.arith import I32_MAX, I32_MIN, wrap_i32
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.logbuffer.parameters import LogParameters, initialise

TERM_LENGTH = 65536
LENGTH = 3 * TERM_LENGTH + 4096
META = 3 * TERM_LENGTH


def parameters(**changes: int) -> LogParameters:
    values = {
        "type": descriptor.CONCURRENT_PUBLICATION,
        "correlation_id": 4,
        "session_id": 5,
        "stream_id": 1001,
        "initial_term_id": 7,
        "term_length": TERM_LENGTH,
        "mtu_length": 1408,
    }
    return LogParameters(**(values | changes))


def log_of(**changes: int) -> np.ndarray:
    log = np.zeros(LENGTH, dtype=np.uint8)
    initialise(log, META, parameters(**changes))
    return log


def tails(log: np.ndarray) -> list[tuple[int, int]]:
    raws = struct.unpack_from("<3q", log, META)
    return [(raw >> 32, raw & 0xFFFFFFFF) for raw in raws]


def active_count(log: np.ndarray) -> int:
    return int(descriptor.active_term_count_acquire(log, META))


def test_the_file_is_whole_pages_with_the_metadata_last() -> None:
    assert descriptor.log_length(TERM_LENGTH, 4096) == 200_704
    assert descriptor.meta_at(200_704) == 3 * TERM_LENGTH
    large = descriptor.log_length(TERM_LENGTH, 2 * 1024 * 1024)
    assert large == 2 * 1024 * 1024
    assert descriptor.meta_at(large) == large - 4096
    assert descriptor.log_length(1 << 30, 4096) == 3 * (1 << 30) + 4096


def test_a_stream_starts_in_partition_zero() -> None:
    log = log_of(initial_term_id=I32_MIN)
    assert tails(log) == [(I32_MIN, 0), (I32_MAX - 1, 0), (I32_MAX, 0)]
    assert active_count(log) == 0
    assert descriptor.producer_position(log, META) == 0


@pytest.mark.parametrize(
    ("start", "offset", "expected"),
    [
        (8, 64, [(7, 0), (8, 64), (6, 0)]),
        (9, 0, [(7, 0), (8, 0), (9, 0)]),
        (10, 65504, [(10, 65504), (8, 0), (9, 0)]),
    ],
)
def test_a_stream_may_start_later(start: int, offset: int, expected: list[object]) -> None:
    log = log_of(start_term_id=start, start_term_offset=offset)
    assert tails(log) == expected
    assert active_count(log) == start - 7
    assert descriptor.producer_position(log, META) == (start - 7) * TERM_LENGTH + offset


@pytest.mark.parametrize(
    "changes",
    [
        {"start_term_id": 6},
        {"start_term_offset": 16},
        {"start_term_offset": -32},
        {"start_term_offset": TERM_LENGTH},
        {"mtu_length": 32},
        {"mtu_length": 1409},
        {"mtu_length": 65536},
        {"page_size": 8192},
        {"term_length": 32768},
        {"type": 3},
    ],
)
def test_invalid_parameters_are_refused(changes: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError):
        log_of(**changes)


def test_an_image_has_no_tails() -> None:
    log = log_of(type=descriptor.IMAGE)
    assert tails(log) == [(0, 0)] * 3
    assert descriptor.end_of_stream_position_acquire(log, META) == 2**63 - 1


def test_the_live_fields() -> None:
    log = log_of()
    assert not descriptor.is_connected_acquire(log, META)
    descriptor.put_is_connected_release(log, META, True)
    descriptor.put_active_transport_count_release(log, META, 2)
    descriptor.put_end_of_stream_position_release(log, META, 4096)
    assert not descriptor.is_publication_revoked(log, META)
    descriptor.put_is_publication_revoked_release(log, META)
    assert struct.unpack_from("<qii", log, META + 128) == (4096, 1, 2)
    assert descriptor.is_connected_acquire(log, META)
    assert descriptor.active_transport_count_acquire(log, META) == 2
    assert descriptor.end_of_stream_position_acquire(log, META) == 4096
    assert descriptor.is_publication_revoked(log, META)
    descriptor.put_is_connected_release(log, META, False)
    assert not descriptor.is_connected_acquire(log, META)


def test_the_fixed_fields_read_back() -> None:
    log = log_of(publication_window_length=32768, initial_term_id=-9)
    assert descriptor.correlation_id(log, META) == 4
    assert descriptor.initial_term_id(log, META) == -9
    assert descriptor.mtu_length(log, META) == 1408
    assert descriptor.term_length(log, META) == TERM_LENGTH
    assert descriptor.page_size(log, META) == 4096
    assert descriptor.publication_window_length(log, META) == 32768
    assert (descriptor.session_id(log, META), descriptor.stream_id(log, META)) == (5, 1001)


@pytest.mark.parametrize("rotate", [descriptor.rotate, descriptor.rotate_exclusive])
def test_rotation_prepares_the_next_tail_then_moves_the_count(rotate: object) -> None:
    log = log_of(initial_term_id=I32_MAX - 1)
    for count in range(7):
        rotate(log, META, count, wrap_i32(I32_MAX - 1 + count))  # type: ignore[operator]
        assert active_count(log) == count + 1
        newest = tails(log)[(count + 1) % 3]
        assert newest == (wrap_i32(I32_MAX + count), 0)
        assert descriptor.producer_position(log, META) == (count + 1) * TERM_LENGTH


def test_only_the_first_of_two_rotations_counts() -> None:
    log = log_of()
    assert descriptor.rotate(log, META, 0, 7)
    struct.pack_into("<q", log, META + 8, (8 << 32) | 640)
    assert not descriptor.rotate(log, META, 0, 7)
    assert tails(log)[1] == (8, 640)
    assert active_count(log) == 1


def test_a_tail_beyond_the_term_counts_as_its_end() -> None:
    log = log_of()
    struct.pack_into("<q", log, META, (7 << 32) | (TERM_LENGTH + 2816))
    assert descriptor.producer_position(log, META) == TERM_LENGTH


@pytest.mark.parametrize(
    ("field", "bad", "status"),
    [
        (descriptor.TERM_LENGTH, [0, -1, 32768, 65537, 131072, I32_MIN, I32_MAX], None),
        (descriptor.PAGE_SIZE, [0, -4096, 2048, 4097, 8192, I32_MIN], None),
        (descriptor.DEFAULT_HEADER_LENGTH, [0, 31, 64], descriptor.BAD_HEADER_LENGTH),
        (descriptor.MTU_LENGTH, [0, 32, 1409, 65536, -1408], descriptor.BAD_MTU_LENGTH),
    ],
)
def test_a_damaged_log_is_refused(field: int, bad: list[int], status: int | None) -> None:
    log = log_of()
    assert descriptor.check_log(log, META) == descriptor.OK
    for value in bad:
        damaged = log.copy()
        struct.pack_into("<i", damaged, META + field, value)
        got = descriptor.check_log(damaged, META)
        assert got == status if status is not None else got < 0
    log[META + descriptor.TYPE] = 3
    assert descriptor.check_log(log, META) == descriptor.BAD_TYPE


def test_a_log_of_the_wrong_length_is_refused() -> None:
    log = log_of()
    for shorter in (0, 100, 4095, LENGTH - 4096, LENGTH - 1):
        cut = log[log.size - shorter :].copy()
        assert descriptor.check_log(cut, shorter - 4096) < 0
    longer = np.concatenate([np.zeros(4096, dtype=np.uint8), log])
    assert descriptor.check_log(longer, META + 4096) == descriptor.BAD_FILE_LENGTH
    assert descriptor.check_log(log, META - 8) == descriptor.BAD_FILE_LENGTH
