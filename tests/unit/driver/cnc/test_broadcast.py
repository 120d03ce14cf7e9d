"""Broadcast: each receiver that keeps up gets every message. A slower receiver gets LAPPED."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.broadcast import LAPPED, NaiveBroadcast, NaiveReceiver
from windtunnel.driver.base.atomics import get_i64, put_i32, put_i64
from windtunnel.driver.cnc import broadcast
from windtunnel.driver.kernels.jit import JIT_DISABLED, kernel

CAPACITY = 256
LONGEST = CAPACITY // 8
TYPE = 7


def make_broadcast(capacity: int = CAPACITY) -> np.ndarray:
    return np.zeros(capacity + broadcast.TRAILER_LENGTH, dtype=np.uint8)


def as_array(content: bytes) -> np.ndarray:
    return np.frombuffer(content, dtype=np.uint8).copy()


def transmit(area: np.ndarray, content: bytes, type_id: int = TYPE) -> int:
    return int(broadcast.transmit(area, type_id, as_array(content), 0, len(content)))


def receive(area: np.ndarray, receiver: np.recarray) -> tuple[int, bytes]:
    scratch = broadcast.make_scratch(area)
    type_id, length = broadcast.receive(area, receiver, scratch)
    return int(type_id), scratch[: int(length)].tobytes()


def test_lays_a_record_out_and_moves_all_three_positions() -> None:
    area = make_broadcast()
    receiver = broadcast.make_receiver(area)
    assert transmit(area, b"one") == broadcast.OK
    assert transmit(area, b"two two") == broadcast.OK
    assert area[:11].tobytes() == b"\x0b\0\0\0\x07\0\0\0one"
    assert [get_i64(area, CAPACITY + at) for at in (0, 8, 16)] == [32, 32, 16]
    assert receive(area, receiver) == (TYPE, b"one")
    assert receive(area, receiver) == (TYPE, b"two two")
    assert receive(area, receiver) == (broadcast.NO_MESSAGE, b"")


def test_a_new_receiver_begins_with_the_latest() -> None:
    area = make_broadcast()
    transmit(area, b"old")
    transmit(area, b"new")
    receiver = broadcast.make_receiver(area)
    assert receive(area, receiver) == (TYPE, b"new")


def test_takes_the_longest_message_and_refuses_a_longer_one() -> None:
    area = make_broadcast()
    assert transmit(area, bytes(LONGEST)) == broadcast.OK
    assert transmit(area, bytes(LONGEST + 1)) == broadcast.TOO_LONG
    assert transmit(area, b"", 0) == broadcast.BAD_TYPE
    assert broadcast.tail_position(area) == LONGEST + 8


def test_wraps_after_padding() -> None:
    area = make_broadcast()
    put_i64(area, CAPACITY + broadcast.TAIL, CAPACITY - 16)
    put_i64(area, CAPACITY + broadcast.LATEST, CAPACITY - 16)
    receiver = broadcast.make_receiver(area)
    transmit(area, b"x" * 20)
    assert area[CAPACITY - 16 : CAPACITY - 8].tobytes() == b"\x10\0\0\0\xff\xff\xff\xff"
    assert broadcast.latest_position(area) == CAPACITY
    assert get_i64(area, CAPACITY + broadcast.TAIL_INTENT) == CAPACITY + 32
    assert receive(area, receiver) == (TYPE, b"x" * 20)
    assert receiver[0].cursor == CAPACITY


def test_a_lapped_receiver_gets_lapped_and_continues_from_the_latest() -> None:
    area = make_broadcast()
    receiver = broadcast.make_receiver(area)
    for number in range(CAPACITY // 16):
        transmit(area, bytes([number] * 8))
    assert receive(area, receiver) == (broadcast.LAPPED, b"")
    assert receiver[0].lapped_count == 1
    assert receive(area, receiver) == (TYPE, bytes([CAPACITY // 16 - 1] * 8))


def test_one_message_short_of_a_lap_is_no_lap() -> None:
    area = make_broadcast()
    receiver = broadcast.make_receiver(area)
    for number in range(CAPACITY // 16 - 1):
        transmit(area, bytes([number] * 8))
    assert receive(area, receiver) == (TYPE, bytes([0] * 8))


def test_an_intent_to_overwrite_counts_as_overwritten() -> None:
    area = make_broadcast()
    receiver = broadcast.make_receiver(area)
    transmit(area, b"doomed")
    put_i64(area, CAPACITY + broadcast.TAIL_INTENT, CAPACITY - 1)
    before = receiver.copy()
    assert receive(area, receiver) == (TYPE, b"doomed")
    receiver[0] = before[0]
    put_i64(area, CAPACITY + broadcast.TAIL_INTENT, CAPACITY)
    assert receive(area, receiver) == (broadcast.LAPPED, b"")


def test_a_message_overwritten_during_its_copy_is_not_delivered() -> None:
    """The copy itself advances the intent here, like a concurrent transmitter."""
    area = make_broadcast()
    receiver = broadcast.make_receiver(area)
    transmit(area, CAPACITY.to_bytes(8, "little"))
    intent_as_scratch = area[CAPACITY : CAPACITY + 8]
    type_id, length = broadcast.receive(area, receiver, intent_as_scratch)
    assert (type_id, length) == (broadcast.LAPPED, 0)
    assert receiver[0].lapped_count == 1


@pytest.mark.parametrize("length", [-1, 0, 7, 41, CAPACITY + 8, 2**31 - 1])
def test_skips_an_invalid_length(length: int) -> None:
    area = make_broadcast()
    receiver = broadcast.make_receiver(area)
    transmit(area, b"12345678")
    put_i32(area, 0, length)
    assert receive(area, receiver) == (broadcast.CORRUPT, b"")
    transmit(area, b"alive")
    assert receive(area, receiver) == (TYPE, b"alive")


@pytest.mark.parametrize("type_id", [TYPE, broadcast.PADDING_TYPE])
def test_skips_a_record_that_crosses_the_end(type_id: int) -> None:
    area = make_broadcast()
    put_i64(area, CAPACITY + broadcast.TAIL, CAPACITY - 16)
    put_i64(area, CAPACITY + broadcast.LATEST, CAPACITY - 16)
    receiver = broadcast.make_receiver(area)
    transmit(area, b"12345678")
    put_i32(area, CAPACITY - 16, 17)
    put_i32(area, CAPACITY - 16 + broadcast.TYPE, type_id)
    assert receive(area, receiver) == (broadcast.CORRUPT, b"")


@pytest.mark.parametrize(
    ("length", "accepted"),
    [(64 + 128, True), (CAPACITY + 128, True), (32 + 128, False), (200 + 128, False), (128, False)],
)
def test_capacity_is_a_power_of_two(length: int, accepted: bool) -> None:
    assert broadcast.is_capacity(length) is accepted


@given(
    operations=st.lists(st.tuples(st.integers(0, 3), st.integers(0, LONGEST)), max_size=80),
    start=st.integers(0, 2 * CAPACITY // 8).map(lambda n: n * 8),
)
def test_agrees_with_the_naive_broadcast(operations: list[tuple[int, int]], start: int) -> None:
    area, naive = make_broadcast(), NaiveBroadcast(CAPACITY, tail=start, latest=start)
    put_i64(area, CAPACITY + broadcast.TAIL, start)
    put_i64(area, CAPACITY + broadcast.LATEST, start)
    pairs = [(broadcast.make_receiver(area), NaiveReceiver(naive)) for _ in range(2)]
    for step, (who, number) in enumerate(operations):
        if who < 2:
            payload = bytes((step + at) & 0xFF for at in range(number))
            naive.transmit(step + 1, payload)
            assert transmit(area, payload, step + 1) == broadcast.OK
            assert broadcast.tail_position(area) == naive.tail
            assert get_i64(area, CAPACITY + broadcast.TAIL_INTENT) == naive.tail
            assert broadcast.latest_position(area) == naive.latest
        else:
            receiver, twin = pairs[who - 2]
            expected = twin.receive()
            if expected == LAPPED:
                expected = (broadcast.LAPPED, b"")
            assert receive(area, receiver) == (expected or (broadcast.NO_MESSAGE, b""))


@given(content=st.binary(min_size=64, max_size=64), trailer=st.binary(min_size=24, max_size=24))
def test_a_receiver_survives_any_bytes(content: bytes, trailer: bytes) -> None:
    area = make_broadcast(64)
    area[:64] = as_array(content)
    for at in (0, 8, 16):
        area[64 + at : 64 + at + 7] = as_array(trailer[at : at + 7])
    receiver = broadcast.make_receiver(area)
    scratch = broadcast.make_scratch(area)
    for _ in range(12):
        type_id, length = broadcast.receive(area, receiver, scratch)
        assert type_id >= 1 or type_id in (0, broadcast.LAPPED, broadcast.CORRUPT)
        assert 0 <= length <= scratch.size


@kernel
def transmit_many(area, source, count):
    """Transmit `count` messages, each filled with its own number."""
    for number in range(count):
        length = 8 * (1 + number % (source.size // 8))
        for at in range(0, length, 8):
            put_i64(source, at, number)
        broadcast.transmit(area, TYPE, source, 0, length)


@kernel
def receive_until(area, receiver, scratch, last):
    """Receive until message `last`. Returns (messages, laps, torn or invalid messages)."""
    messages, laps, torn = 0, 0, 0
    previous = -1
    while previous < last:
        type_id, length = broadcast.receive(area, receiver, scratch)
        if type_id == broadcast.LAPPED:
            laps += 1
        elif type_id != broadcast.NO_MESSAGE:
            number = get_i64(scratch, 0)
            good = type_id == TYPE and number > previous
            good = good and length == 8 * (1 + number % (LONGEST // 8))
            for at in range(0, length, 8):
                good = good and get_i64(scratch, at) == number
            torn += 0 if good else 1
            messages += 1
            previous = max(previous, number)
    return messages, laps, torn


def test_a_slow_receiver_never_gets_a_torn_message() -> None:
    count = 400 if JIT_DISABLED else 1_000_000
    area = make_broadcast()
    source = np.zeros(LONGEST, dtype=np.uint8)
    warm = make_broadcast()
    scratch = broadcast.make_scratch(area)
    warm_receiver = broadcast.make_receiver(warm)
    transmit_many(warm, source, 1)
    receive_until(warm, warm_receiver, scratch, 0)
    receiver = broadcast.make_receiver(area)
    thread = threading.Thread(target=transmit_many, args=(area, source, count), daemon=True)
    thread.start()
    messages, laps, torn = receive_until(area, receiver, scratch, count - 1)
    thread.join()
    assert torn == 0
    assert messages > 0
    assert laps == receiver[0].lapped_count
    assert messages == count or laps > 0
