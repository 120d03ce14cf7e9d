"""Counters: each operation, from many threads, and after close."""

import threading

import numpy as np
import pytest

from tests.unit.driver.client.compiled_handlers import raise_often
from windtunnel.driver.client.counter import Counter
from windtunnel.driver.cnc import counters
from windtunnel.driver.cnc.counters_reader import CountersReader

COUNTER_ID = 3


class Owner:
    """The conductor of a counter's client."""

    def __init__(self):
        self.counter_values = np.zeros(8 * counters.COUNTER_LENGTH, np.uint8)
        metadata = np.zeros(8 * counters.METADATA_LENGTH, np.uint8)
        self.counters = CountersReader(metadata, self.counter_values)
        self.released = []

    def release_counter(self, counter):
        self.released.append(counter)
        counter.on_client_closed()

    def value(self):
        return int(counters.get(self.counter_values, COUNTER_ID))


@pytest.fixture
def owner():
    return Owner()


@pytest.fixture
def counter(owner):
    return Counter(
        owner, correlation_id=1, registration_id=1, counter_id=COUNTER_ID, is_static=False
    )


def test_a_written_value_is_visible_to_all(owner, counter):
    counter.set(5)
    assert (counter.get(), owner.value()) == (5, 5)
    counter.set_plain(-7)
    assert (counter.get(), owner.value()) == (-7, -7)


def test_atomic_operations_return_the_previous_value(counter):
    results = [counter.increment(), counter.get_and_add(10), counter.decrement(), counter.get()]
    assert results == [0, 1, 11, 10]


def test_compare_and_set_needs_the_expected_value(counter):
    counter.set(2)
    assert not counter.compare_and_set(1, 9)
    assert counter.get() == 2
    assert counter.compare_and_set(2, 9)
    assert counter.get() == 9


def test_a_proposed_maximum_only_rises(counter):
    assert [counter.propose_max(value) for value in (5, 5, 4, 6)] == [True, False, False, True]
    assert counter.get() == 6


def test_threads_lose_no_increment_and_the_highest_proposal_wins(owner, counter):
    other = Counter(
        owner, correlation_id=2, registration_id=2, counter_id=COUNTER_ID + 1, is_static=True
    )

    def work(first):
        for step in range(300):
            counter.increment()
            other.propose_max(first + step)

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 100, 1_000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (counter.get(), other.get()) == (900, 1_299)


def test_each_increase_is_reported_to_one_caller(owner):
    at, times, raised = COUNTER_ID * counters.COUNTER_LENGTH, 3_000_000, []
    raise_often(owner.counter_values, at, 0)

    both = threading.Barrier(2)

    def work():
        both.wait()
        raised.append(raise_often(owner.counter_values, at, times))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(raised) == owner.value() > 0


def test_a_closed_counter_is_not_written(owner, counter):
    counter.set(5)
    with counter:
        pass
    counter.close()
    assert owner.released == [counter]
    counter.set(1)
    counter.set_plain(1)
    results = [counter.increment(), counter.get_and_add(1), counter.decrement(), counter.get()]
    assert results == [0, 0, 0, 0]
    assert not counter.compare_and_set(5, 1)
    assert not counter.propose_max(9)
    assert (owner.value(), counter.label) == (5, "")
