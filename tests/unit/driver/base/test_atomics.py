"""Typed memory access, compiled and as plain Python: values, checks and atomicity."""

import random
import struct
import threading
from collections.abc import Callable

import numpy as np
import pytest
from numba.core.errors import TypingError

from tests.unit.driver.base.loops import (
    add_many,
    consume,
    double_first_byte,
    increment_by_compare_and_set,
    produce,
)
from windtunnel.driver.base import atomics
from windtunnel.driver.kernels.jit import BOUNDS_CHECKED, JIT_DISABLED

REFUSED = (TypeError, ValueError, struct.error) if JIT_DISABLED else TypingError
KINDS = [
    ("<B", atomics.get_u8, atomics.put_u8, [0, 1, 255]),
    ("<H", atomics.get_u16, atomics.put_u16, [0, 0xFFFF, 0x1234]),
    ("<i", atomics.get_i32, atomics.put_i32, [0, -1, 2**31 - 1, -(2**31)]),
    ("<q", atomics.get_i64, atomics.put_i64, [0, -1, 2**63 - 1, -(2**63), 2**32 + 5]),
]
ORDERED = [
    ("<i", atomics.get_i32_acquire, atomics.put_i32_release, [0, -1, 2**31 - 1, -(2**31)]),
    ("<q", atomics.get_i64_acquire, atomics.put_i64_release, [0, -1, 2**63 - 1, -(2**63)]),
]
Getter = Callable[[np.ndarray, int], int]
Putter = Callable[[np.ndarray, int, int], None]


def check_values(form: str, get: Getter, put: Putter, values: list[int], at: int) -> None:
    for value in values:
        buf = np.full(40, 0xAA, dtype=np.uint8)
        put(buf, at, value)
        expected = bytearray(b"\xaa" * 40)
        struct.pack_into(form, expected, at, value)
        assert bytes(buf) == bytes(expected)
        assert get(buf, at) == value


@pytest.mark.parametrize("at", [0, 1, 7, 32])
@pytest.mark.parametrize(("form", "get", "put", "values"), KINDS)
def test_plain_access(form: str, get: Getter, put: Putter, values: list[int], at: int) -> None:
    check_values(form, get, put, values, at)


@pytest.mark.parametrize("at", [0, 8, 32])
@pytest.mark.parametrize(("form", "get", "put", "values"), ORDERED)
def test_ordered_access(form: str, get: Getter, put: Putter, values: list[int], at: int) -> None:
    check_values(form, get, put, values, at)


def test_a_byte_can_be_released() -> None:
    buf = np.zeros(4, dtype=np.uint8)
    atomics.put_u8_release(buf, 2, 200)
    assert bytes(buf) == b"\0\0\xc8\0"


def test_a_store_keeps_the_low_bits() -> None:
    buf = np.zeros(8, dtype=np.uint8)
    atomics.put_i32(buf, 0, 2**31)
    assert atomics.get_i32(buf, 0) == -(2**31)
    atomics.put_u8(buf, 4, 0x1FF)
    atomics.put_u16(buf, 6, -1)
    assert bytes(buf[4:]) == b"\xff\0\xff\xff"


@pytest.mark.parametrize(
    ("get", "compare_and_set", "add"),
    [
        (atomics.get_i32, atomics.cas_i32, atomics.add_i32),
        (atomics.get_i64, atomics.cas_i64, atomics.add_i64),
    ],
)
def test_locked_access(get: Getter, compare_and_set: Callable, add: Callable) -> None:
    buf = np.zeros(16, dtype=np.uint8)
    assert add(buf, 8, -5) == 0
    assert add(buf, 8, 3) == -5
    assert not compare_and_set(buf, 8, 0, 9)
    assert get(buf, 8) == -2
    assert compare_and_set(buf, 8, -2, 9)
    assert get(buf, 8) == 9
    assert not buf[:8].any()


@pytest.mark.parametrize(
    "store",
    [
        lambda buf: atomics.put_i32(buf, 0, 1),
        lambda buf: atomics.put_i64_release(buf, 0, 1),
        lambda buf: atomics.cas_i64(buf, 0, 0, 1),
        lambda buf: atomics.add_i32(buf, 0, 1),
        lambda buf: atomics.zero(buf, 0, 8),
        lambda buf: atomics.copy(buf, 0, np.ones(8, dtype=np.uint8), 0, 8),
        lambda buf: atomics.copy_ahead(buf, 0, np.ones(8, dtype=np.uint8), 0, 8),
    ],
)
def test_a_store_into_a_read_only_array_is_refused(store: Callable[[np.ndarray], object]) -> None:
    buf = np.zeros(16, dtype=np.uint8)
    buf.flags.writeable = False
    with pytest.raises(REFUSED):
        store(buf)
    assert not buf.any()


def test_zeroing_changes_only_its_range() -> None:
    chance = random.Random(5)
    for _ in range(300):
        buf = np.full(700, 7, dtype=np.uint8)
        at, length = chance.randrange(300), chance.choice([0, 1, 63, 64, 65, 127, 128, 400])
        expected = buf.copy()
        expected[at : at + length] = 0
        atomics.zero(buf, at, length)
        assert np.array_equal(buf, expected), (at, length)


def test_copying_ahead_changes_only_its_range() -> None:
    chance = random.Random(6)
    source = np.frombuffer(chance.randbytes(6000), dtype=np.uint8)
    lengths = [*range(200), 1344, 1375, 4096, 5000]
    for _ in range(500):
        buf = np.full(6000, 7, dtype=np.uint8)
        length = chance.choice(lengths)
        at, source_at = (chance.randrange(6000 - length) for _ in range(2))
        expected = buf.copy()
        expected[at : at + length] = source[source_at : source_at + length]
        atomics.copy_ahead(buf, at, source, source_at, length)
        assert np.array_equal(buf, expected), (at, source_at, length)


@pytest.mark.parametrize("at", [0, 15, 16, 1 << 40, -(1 << 40)])
def test_a_prefetch_changes_nothing_and_may_be_outside(at: int) -> None:
    buf = np.arange(16, dtype=np.uint8)
    buf.flags.writeable = False
    atomics.prefetch(buf, at)
    assert buf.tolist() == list(range(16))
    buf = buf.copy()
    atomics.prefetch_to_write(buf, at)
    assert buf.tolist() == list(range(16))


def test_a_read_only_array_can_be_read() -> None:
    buf = np.frombuffer(struct.pack("<q", -9), dtype=np.uint8)
    assert atomics.get_i64(buf, 0) == -9


@pytest.mark.skipif(JIT_DISABLED, reason="the twins work on any buffer")
@pytest.mark.parametrize(
    "buf",
    [
        np.zeros(32, dtype=np.uint8)[::2],
        np.zeros(8, dtype=np.int64),
        np.zeros(32, dtype=np.int8),
        np.zeros((4, 8), dtype=np.uint8),
    ],
)
def test_anything_but_contiguous_bytes_is_rejected(buf: np.ndarray) -> None:
    with pytest.raises(TypingError):
        atomics.get_i32(buf, 0)
    with pytest.raises(TypingError):
        atomics.put_i64_release(buf, 0, 1)


@pytest.mark.skipif(
    not (JIT_DISABLED or BOUNDS_CHECKED), reason="only checked builds look at ranges"
)
@pytest.mark.parametrize(
    "access",
    [
        lambda buf: atomics.get_i32(buf, 13),
        lambda buf: atomics.get_i64_acquire(buf, 16),
        lambda buf: atomics.put_i64(buf, 9, 1),
        lambda buf: atomics.put_u8(buf, 16, 1),
        lambda buf: atomics.zero(buf, 8, 9),
        lambda buf: atomics.copy(buf, 9, buf, 0, 8),
        lambda buf: atomics.copy(buf, 0, buf, 9, 8),
    ],
)
def test_checked_builds_refuse_an_access_outside(access: Callable[[np.ndarray], object]) -> None:
    with pytest.raises((AssertionError, struct.error)):
        access(np.zeros(16, dtype=np.uint8))


@pytest.mark.parametrize(("target", "source"), [(0, 3), (3, 0), (4, 4)])
def test_ranges_of_a_copy_may_overlap(target: int, source: int) -> None:
    buf = np.arange(32, dtype=np.uint8)
    expected = buf.copy()
    expected[target : target + 20] = np.arange(source, source + 20)
    atomics.copy(buf, target, buf, source, 20)
    np.testing.assert_array_equal(buf, expected)


def test_zero_touches_its_range_alone() -> None:
    buf = np.full(16, 9, dtype=np.uint8)
    atomics.zero(buf, 3, 5)
    assert list(buf) == [9] * 3 + [0] * 5 + [9] * 8


def test_bytes_at_an_address_are_the_array_itself() -> None:
    buf = np.full(16, 21, dtype=np.uint8)
    assert double_first_byte(atomics.address_of(buf), 16) == 16
    assert list(buf[:2]) == [42, 21]


def raced(work: Callable[[np.ndarray, int, int, int], None], count: int) -> int:
    """Return the final value of a counter to which two threads each add `count`."""
    buf = np.zeros(64, dtype=np.uint8)
    work(buf, 8, 0, 1)
    buf[:] = 0
    threads = [threading.Thread(target=work, args=(buf, 8, count, 2)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return int(atomics.get_i64(buf, 8))


@pytest.mark.parametrize("work", [add_many, increment_by_compare_and_set])
def test_two_threads_lose_no_additions(work: Callable[[np.ndarray, int, int, int], None]) -> None:
    count = 20_000 if JIT_DISABLED else 1_000_000
    assert raced(work, count) == 2 * count


@pytest.mark.skipif(JIT_DISABLED, reason="the interpreter's lock would order everything")
def test_a_store_before_a_release_is_visible_after_the_acquire() -> None:
    buf, torn = np.zeros(256, dtype=np.uint8), []
    rounds = 20_000
    consume(buf, 0)
    produce(buf, 0)
    consumer = threading.Thread(target=lambda: torn.append(consume(buf, rounds)))
    consumer.start()
    produce(buf, rounds)
    consumer.join()
    assert torn == [0]
