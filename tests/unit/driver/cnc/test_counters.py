"""Counters: updates of values, and ids that are not confused after reuse."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.barrier import wait_for_all
from tests.naive.counters import NaiveCounter, NaiveManager, find
from windtunnel.driver.base.arith import I64_MAX
from windtunnel.driver.base.atomics import get_i64, put_i32, put_i64
from windtunnel.driver.base.clock import ManualClock
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.cnc import counters
from windtunnel.driver.cnc.counters_manager import CountersManager, append_label
from windtunnel.driver.cnc.counters_reader import CountersReader
from windtunnel.driver.kernels.jit import JIT_DISABLED, kernel

CAPACITY = 6
TYPE = 1001


class Sections:
    """Both sections of a small file, with a manager and a reader over them."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.metadata = np.zeros(capacity * counters.METADATA_LENGTH, dtype=np.uint8)
        self.values = np.zeros(capacity * counters.COUNTER_LENGTH, dtype=np.uint8)
        self.clock = ManualClock()
        self.manager = CountersManager(self.metadata, self.values, self.clock)
        self.reader = CountersReader(self.metadata, self.values)

    def ids(self) -> list[int]:
        return [counter.counter_id for counter in self.reader]


def test_values_move_in_their_own_record_only() -> None:
    values = np.zeros(3 * 128, dtype=np.uint8)
    counters.set(values, 1, 40)
    counters.increment(values, 1)
    counters.add(values, 1, -3)
    assert counters.add_atomic(values, 1, 2) == 38
    assert counters.get(values, 1) == 40
    counters.set_release(values, 1, -(2**63))
    assert counters.get_acquire(values, 1) == -(2**63)
    assert get_i64(values, 128) == -(2**63)
    assert not values[:128].any()
    assert not values[136:].any()


@pytest.mark.parametrize(
    ("value", "rises", "after"), [(11, True, 11), (10, False, 10), (9, False, 10)]
)
def test_a_proposed_maximum_only_raises(value: int, rises: bool, after: int) -> None:
    values = np.zeros(128, dtype=np.uint8)
    counters.set(values, 0, 10)
    assert counters.propose_max_release(values, 0, value) is rises or JIT_DISABLED
    assert counters.get(values, 0) == after


@kernel
def add_many(values, counter_id, count, arrived, thread):
    """Add one, `count` times, concurrently with others."""
    wait_for_all(arrived, thread)
    for _ in range(count):
        counters.add_atomic(values, counter_id, 1)


def test_atomic_adds_lose_nothing() -> None:
    values, arrived = np.zeros(2 * 128, dtype=np.uint8), np.zeros(2 * 8, dtype=np.uint8)
    count = 1_000 if JIT_DISABLED else 10_000_000
    add_many(values, 0, 1, np.zeros(8, dtype=np.uint8), 0)
    threads = [
        threading.Thread(target=add_many, args=(values, 1, count, arrived, thread))
        for thread in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counters.get(values, 1) == 2 * count


def test_a_counter_is_complete_when_it_becomes_allocated() -> None:
    area = Sections()
    counter_id = area.manager.allocate(TYPE, b"key", "label", 11, 12, 13, value=14)
    counter = area.reader.read(counter_id)
    assert counter is not None
    assert (counter.counter_id, counter.type_id, counter.value) == (0, TYPE, 14)
    assert (counter.registration_id, counter.owner_id, counter.reference_id) == (11, 12, 13)
    assert counter.key == b"key".ljust(112, b"\0")
    assert counter.label == "label"
    assert get_i64(area.metadata, 8) == I64_MAX


def test_a_counter_with_an_overwritten_state_is_freed_once() -> None:
    area = Sections()
    counter_id = area.manager.allocate(TYPE, b"", "spoilt")
    area.metadata[counter_id * 512 : counter_id * 512 + 512] = 0xFF
    area.manager.free(counter_id)
    with pytest.raises(AssertionError, match="not in use"):
        area.manager.free(counter_id)


def test_an_id_is_not_reused_for_a_second() -> None:
    area = Sections()
    first = area.manager.allocate(TYPE, b"first key", "a long first label", 1, 2, 3, value=4)
    area.manager.allocate(TYPE, b"", "second")
    area.manager.free(first)
    assert area.ids() == [1]
    assert get_i64(area.metadata, 8) == area.clock.now_ms() + 1_000
    assert not area.metadata[16:128].any()
    assert area.reader.value(first) == 4
    area.clock.advance(999_000_000)
    assert area.manager.allocate(TYPE, b"", "third") == 2
    area.clock.advance(1_000_000)
    assert area.manager.allocate(TYPE, b"k", "new", 21) == first
    counter = area.reader.read(first)
    assert counter is not None
    assert (counter.value, counter.registration_id, counter.owner_id) == (0, 21, 0)
    assert (counter.reference_id, counter.label) == (0, "new")


class UnsearchedQueue(deque[Any]):
    """A queue whose first element may be taken, but which may not be searched."""

    def __iter__(self) -> Iterator[Any]:
        pytest.fail("freed counters were searched")


def test_a_free_id_is_found_without_a_search() -> None:
    area = Sections()
    area.manager._freed = UnsearchedQueue()
    for _ in range(2):
        area.manager.free(area.manager.allocate(TYPE, b"", ""))
    assert area.manager.allocate(TYPE, b"", "") == 2
    area.clock.advance(1_000_000_000)
    assert [area.manager.allocate(TYPE, b"", "") for _ in range(3)] == [0, 1, 3]


def test_an_id_is_reused_although_the_clock_was_set_back() -> None:
    area = Sections()
    area.manager.free(area.manager.allocate(TYPE, b"", ""))
    area.clock.advance(-3_600_000_000_000)
    assert area.manager.allocate(TYPE, b"", "") == 0


def test_an_id_is_active_only_for_its_own_registration() -> None:
    area = Sections()
    counter_id = area.manager.allocate(TYPE, b"", "mine", 5)
    assert area.reader.is_active(counter_id, 5)
    assert not area.reader.is_active(counter_id, 6)
    area.manager.free(counter_id)
    assert not area.reader.is_active(counter_id, 5)
    for outside in (-1, CAPACITY, 2**31 - 1, -(2**31)):
        assert not area.reader.is_active(outside, 0)


LABELS = ("Bytes sent", "", "\u00e9" * counters.LABEL_LENGTH_MAX, "Errors: 1.53")


def test_the_first_counters_are_like_those_that_are_allocated_one_by_one() -> None:
    together, single = Sections(), Sections()
    together.manager.allocate_first(TYPE, LABELS, owner_id=-1)
    for counter_id, label in enumerate(LABELS):
        key = counter_id.to_bytes(4, "little")
        assert single.manager.allocate(TYPE, key, label, counter_id, -1) == counter_id
    for each in (together, single):
        assert each.manager.allocate(TYPE, b"key", "next") == len(LABELS)
        each.manager.free(1)
    assert np.array_equal(together.metadata, single.metadata)
    assert np.array_equal(together.values, single.values)
    assert together.ids() == single.ids()


def test_too_many_first_counters_are_refused() -> None:
    with pytest.raises(StorageError, match="no free counter: all 3 are in use"):
        Sections(3).manager.allocate_first(TYPE, LABELS, owner_id=-1)


def test_raises_when_no_counter_is_free() -> None:
    area = Sections()
    for _ in range(CAPACITY):
        area.manager.allocate(TYPE, b"", "")
    with pytest.raises(StorageError, match=r"all 6 are in use.*counters_values_buffer_length=768"):
        area.manager.allocate(TYPE, b"", "")
    assert area.ids() == list(range(CAPACITY))


@pytest.mark.parametrize(
    ("label", "kept"),
    [("x" * 380, "x" * 380), ("x" * 381, "x" * 380), ("x" * 379 + "é", "x" * 379)],
    ids=["fits", "one too long", "cut inside a character"],
)
def test_a_label_is_truncated_to_380_bytes(label: str, kept: str) -> None:
    area = Sections()
    counter_id = area.manager.allocate(TYPE, b"k" * 113, label)
    area.manager.allocate(TYPE + 1, b"", "next")
    counter = area.reader.read(counter_id)
    assert counter is not None
    assert (counter.label, counter.key) == (kept, b"k" * 112)
    neighbour = area.reader.read(counter_id + 1)
    assert neighbour is not None
    assert (neighbour.type_id, neighbour.label) == (TYPE + 1, "next")


def test_a_long_key_is_truncated() -> None:
    area = Sections()
    area.manager.allocate(TYPE, b"k" * 600, "")
    assert not area.metadata[counters.LABEL_LENGTH :].any()


def test_a_counter_that_is_reused_during_reading_is_not_returned() -> None:
    area = Sections()

    class InterruptedReader(CountersReader):
        """The driver frees the counter between two looks at it."""

        def label(self, counter_id: int) -> str:
            area.manager.free(counter_id)
            return super().label(counter_id)

    area.manager.allocate(TYPE, b"", "label")
    assert list(InterruptedReader(area.metadata, area.values)) == []


def test_a_label_is_appended_until_its_record_is_full() -> None:
    area = Sections()
    counter_id = area.manager.allocate(TYPE, b"", "client-heartbeat: id=1")
    assert append_label(area.metadata, counter_id, " name=x") == 7
    assert area.reader.label(counter_id) == "client-heartbeat: id=1 name=x"
    assert area.manager.append_label(counter_id, "y" * 400) == 380 - 29
    assert area.manager.append_label(counter_id, "z") == 0
    assert area.reader.label(counter_id).endswith("name=x" + "y" * 351)


def test_a_label_is_replaced_within_its_record() -> None:
    area = Sections()
    counter_id = area.manager.allocate(TYPE, b"", "Bootstrap neighbor: name=a:1 resolved=")
    for label in ("short", "Bootstrap neighbor: name=a:1 resolved=10.0.0.1:1", ""):
        area.manager.update_label(counter_id, label)
        assert area.reader.label(counter_id) == label
    area.manager.update_label(counter_id, "y" * 400)
    assert area.reader.label(counter_id) == "y" * 380
    assert not area.metadata[counters.METADATA_LENGTH :].any()


@pytest.mark.parametrize("length", [-1, 381, 2**31 - 1, -(2**31)])
def test_a_damaged_label_length_stays_inside_its_record(length: int) -> None:
    area = Sections(capacity=2)
    counter_id = area.manager.allocate(TYPE, b"", "label")
    put_i32(area.metadata, counters.LABEL_LENGTH, length)
    label = area.reader.label(counter_id)
    assert label == ("" if length < 0 else "label".ljust(380, "\0"))
    area.manager.append_label(counter_id, "more")
    assert not area.metadata[counters.METADATA_LENGTH :].any()


def test_reading_ends_at_the_first_unused_record() -> None:
    area = Sections()
    for number in range(3):
        area.manager.allocate(TYPE, b"", str(number))
    put_i64(area.values, 2 * 128 + counters.REGISTRATION_ID, 7)
    put_i32(area.metadata, 1 * 512, counters.UNUSED)
    assert area.ids() == [0]
    assert area.reader.find(TYPE, 7) is None
    put_i32(area.metadata, 1 * 512, counters.RECLAIMED)
    assert area.ids() == [0, 2]
    assert area.reader.find(TYPE, 7) == 2
    assert area.reader.read(1) is None
    assert area.reader.read(CAPACITY) is None


@pytest.mark.parametrize("counter_id", [-1, CAPACITY])
def test_an_id_outside_the_file_is_refused(counter_id: int) -> None:
    area = Sections()
    reads: tuple[Callable, ...] = (area.reader.value, area.reader.label, area.reader.key)
    for read in reads:
        with pytest.raises(IndexError, match=r"expected 0 to 5"):
            read(counter_id)


def test_reading_needs_no_write_access() -> None:
    area = Sections()
    area.manager.allocate(TYPE, b"", "label", 3, value=9)
    area.metadata.flags.writeable = area.values.flags.writeable = False
    reader = CountersReader(area.metadata, area.values)
    assert [counter.value for counter in reader] == [9]
    assert reader.find(TYPE, 3) == 0


SMALL = st.integers(-1, 1)


@given(
    records=st.lists(st.builds(NaiveCounter, SMALL, SMALL, SMALL), max_size=CAPACITY),
    type_id=SMALL,
    registration_id=SMALL,
)
def test_find_agrees_with_the_naive_implementation(
    records: list[NaiveCounter], type_id: int, registration_id: int
) -> None:
    area = Sections()
    for counter_id, record in enumerate(records):
        put_i32(area.metadata, counter_id * 512, record.state)
        put_i32(area.metadata, counter_id * 512 + counters.TYPE_ID, record.type_id)
        put_i64(area.values, counter_id * 128 + counters.REGISTRATION_ID, record.registration_id)
    assert area.reader.find(type_id, registration_id) == find(records, type_id, registration_id)


@given(
    operations=st.lists(st.tuples(st.sampled_from(["allocate", "free", "wait"]), st.integers(0, 5)))
)
def test_the_manager_agrees_with_the_naive_manager(
    operations: list[tuple[str, int]],
) -> None:
    area = Sections()
    naive = NaiveManager(CAPACITY, 1_000)
    living: list[int] = []
    for name, number in operations:
        now_ms = area.clock.now_ms()
        if name == "wait":
            area.clock.advance(number * 300_000_000)
        elif name == "free" and living:
            counter_id = living.pop(number % len(living))
            area.manager.free(counter_id)
            naive.free(counter_id, now_ms)
        elif name == "allocate":
            expected = naive.allocate(now_ms)
            if expected is None:
                with pytest.raises(StorageError):
                    area.manager.allocate(TYPE, b"", "")
            else:
                assert area.manager.allocate(TYPE, b"", "", expected) == expected
                living.append(expected)
        assert area.ids() == sorted(living)
