"""The queue between two threads: order, capacity, and no losses."""

import threading
from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.driver.base.loops import put_all, take_all
from windtunnel.driver.base import handoff
from windtunnel.driver.kernels.jit import JIT_DISABLED


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 5))
def test_it_behaves_like_a_bounded_deque(puts: list[bool], capacity: int) -> None:
    queue, record = handoff.make_queue(capacity), handoff.make_record()
    expected: deque[int] = deque()
    for number, is_put in enumerate(puts):
        if is_put:
            record[:] = number
            assert handoff.put(queue, record) == (len(expected) < capacity)
            if len(expected) < capacity:
                expected.append(number)
        else:
            assert handoff.take(queue, record) == bool(expected)
            if expected:
                assert set(record) == {expected.popleft()}
        assert handoff.is_empty(queue) == (not expected)
        assert handoff.free_record_count(queue) == capacity - len(expected)


def test_two_threads_exchange_records_in_order() -> None:
    count = 2_000 if JIT_DISABLED else 20_000
    queue, wrong = handoff.make_queue(64), []
    put_all(queue, handoff.make_record(), 0)
    take_all(queue, handoff.make_record(), 0)
    taker = threading.Thread(
        target=lambda: wrong.append(take_all(queue, handoff.make_record(), count))
    )
    taker.start()
    put_all(queue, handoff.make_record(), count)
    taker.join()
    assert wrong == [0]
