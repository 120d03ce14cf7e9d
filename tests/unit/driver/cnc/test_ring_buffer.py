"""Command ring buffer: no message is lost or invented, whatever the producers do."""

import threading
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.barrier import wait_for_all
from tests.naive.ring import NaiveRing, Record
from windtunnel.driver.base import system
from windtunnel.driver.base.atomics import add_i64, get_i64, put_i32, put_i64
from windtunnel.driver.cnc import ring_buffer, ring_buffer_reader
from windtunnel.driver.kernels.jit import JIT_DISABLED, kernel

CAPACITY = 256
LONGEST = CAPACITY // 8
TYPE = 7
PATIENCE = 100_000_000
"""The number of yields after which a producer or consumer gives up."""


def make_ring(capacity: int = CAPACITY) -> np.ndarray:
    return np.zeros(capacity + ring_buffer.TRAILER_LENGTH, dtype=np.uint8)


def as_array(content: bytes) -> np.ndarray:
    return np.frombuffer(content, dtype=np.uint8).copy()


def write(ring: np.ndarray, content: bytes, type_id: int = TYPE) -> int:
    return int(ring_buffer.write(ring, type_id, as_array(content), 0, len(content)))


def read(ring: np.ndarray, consume: Callable = ring_buffer_reader.read) -> tuple[int, bytes]:
    scratch = ring_buffer_reader.make_scratch(ring)
    type_id, length = consume(ring, scratch)
    return int(type_id), scratch[: int(length)].tobytes()


def move_to(ring: np.ndarray, position: int) -> None:
    """Set the positions as if `position` bytes had been written and read."""
    size = ring.size - ring_buffer.TRAILER_LENGTH
    for field in (ring_buffer.TAIL, ring_buffer.HEAD, ring_buffer.HEAD_CACHE):
        put_i64(ring, size + field, position)


def assert_free_space_is_zero(ring: np.ndarray) -> None:
    size = ring.size - ring_buffer.TRAILER_LENGTH
    head, tail = ring_buffer.consumer_position(ring), ring_buffer.producer_position(ring)
    for position in range(tail, head + size, 8):
        at = position % size
        assert not ring[at : at + 8].any(), f"left behind at {at}"


def test_transfers_a_message_and_zeroes_its_record() -> None:
    ring = make_ring()
    assert not ring_buffer_reader.has_message(ring)
    assert write(ring, b"hello") == ring_buffer.OK
    assert ring_buffer_reader.has_message(ring)
    assert ring[:13].tobytes() == b"\x0d\0\0\0\x07\0\0\0hello"
    assert ring_buffer.producer_position(ring) == 16
    assert read(ring) == (TYPE, b"hello")
    assert ring_buffer.consumer_position(ring) == 16
    assert not ring[:CAPACITY].any()
    assert read(ring) == (ring_buffer_reader.NO_MESSAGE, b"")


def test_peek_leaves_the_message_until_advance() -> None:
    ring = make_ring()
    write(ring, b"first")
    write(ring, b"second")
    assert read(ring, ring_buffer_reader.peek) == (TYPE, b"first")
    assert read(ring, ring_buffer_reader.peek) == (TYPE, b"first")
    assert ring_buffer_reader.advance(ring) == 16
    assert read(ring, ring_buffer_reader.peek) == (TYPE, b"second")
    ring_buffer_reader.advance(ring)
    assert ring_buffer_reader.advance(ring) == 0


def test_takes_the_longest_message_and_refuses_a_longer_one() -> None:
    ring = make_ring()
    assert write(ring, bytes(LONGEST)) == ring_buffer.OK
    assert write(ring, bytes(LONGEST + 1)) == ring_buffer.TOO_LONG
    assert ring_buffer.claim(ring, TYPE, -1) == ring_buffer.TOO_LONG
    assert ring_buffer.claim(ring, 0, 1) == ring_buffer.BAD_TYPE
    assert ring_buffer.claim(ring, 1, 1) >= 0


def test_is_usable_to_the_last_byte() -> None:
    ring = make_ring()
    for _ in range(CAPACITY // 16):
        assert write(ring, b"12345678") == ring_buffer.OK
    assert write(ring, b"") == ring_buffer.INSUFFICIENT_CAPACITY
    read(ring)
    assert write(ring, b"12345678") == ring_buffer.OK
    assert get_i64(ring, CAPACITY + ring_buffer.HEAD_CACHE) == 16
    assert write(ring, b"") == ring_buffer.INSUFFICIENT_CAPACITY


def test_wraps_after_padding() -> None:
    ring = make_ring()
    move_to(ring, CAPACITY - 16)
    assert write(ring, b"x" * 20) == ring_buffer.OK
    assert ring[CAPACITY - 16 : CAPACITY - 8].tobytes() == b"\x10\0\0\0\xff\xff\xff\xff"
    assert ring_buffer.producer_position(ring) == CAPACITY + 32
    assert read(ring) == (TYPE, b"x" * 20)
    assert ring_buffer.consumer_position(ring) == CAPACITY + 32
    assert_free_space_is_zero(ring)


def test_rejects_without_padding_when_the_start_is_in_use() -> None:
    """Like the C client: there is enough room in total, but not contiguous."""
    ring = make_ring()
    move_to(ring, CAPACITY - 24)
    put_i64(ring, CAPACITY + ring_buffer.HEAD, 16)
    put_i64(ring, CAPACITY + ring_buffer.HEAD_CACHE, 16)
    assert write(ring, b"x" * 24) == ring_buffer.INSUFFICIENT_CAPACITY
    assert ring_buffer.producer_position(ring) == CAPACITY - 24
    assert write(ring, b"x" * 16) == ring_buffer.OK


def test_continues_after_padding_without_a_message() -> None:
    """Like the Java client leaves it: the end is padded and nothing written at the start yet."""
    ring = make_ring()
    move_to(ring, CAPACITY - 24)
    put_i32(ring, CAPACITY - 24 + ring_buffer.TYPE, ring_buffer.PADDING_TYPE)
    put_i32(ring, CAPACITY - 24, 24)
    put_i64(ring, CAPACITY + ring_buffer.TAIL, CAPACITY)
    assert read(ring) == (ring_buffer_reader.NO_MESSAGE, b"")
    assert ring_buffer.consumer_position(ring) == CAPACITY
    write(ring, b"x" * 24)
    assert read(ring) == (TYPE, b"x" * 24)


def test_waits_for_a_claim_and_skips_an_abort() -> None:
    ring = make_ring()
    aborted = ring_buffer.claim(ring, TYPE, 5)
    claimed = ring_buffer.claim(ring, TYPE, 3)
    write(ring, b"last")
    assert read(ring) == (ring_buffer_reader.NO_MESSAGE, b"")
    assert ring_buffer.abort(ring, aborted)
    assert read(ring) == (ring_buffer_reader.NO_MESSAGE, b"")
    ring[claimed : claimed + 3] = as_array(b"mid")
    assert ring_buffer.commit(ring, claimed)
    assert read(ring) == (TYPE, b"mid")
    assert read(ring) == (TYPE, b"last")


def test_a_late_commit_after_an_unblock_changes_nothing() -> None:
    ring = make_ring()
    claimed = ring_buffer.claim(ring, TYPE, 3)
    assert ring_buffer_reader.unblock(ring)
    before = ring.copy()
    assert not ring_buffer.commit(ring, claimed)
    assert (ring == before).all()


def test_unblocks_a_claim_without_a_length_only_when_its_end_is_certain() -> None:
    ring = make_ring()
    add_i64(ring, CAPACITY + ring_buffer.TAIL, 24)
    assert not ring_buffer_reader.unblock(ring)
    write(ring, b"next")
    assert ring_buffer_reader.unblock(ring)
    assert read(ring) == (TYPE, b"next")
    assert not ring_buffer_reader.unblock(ring)


def test_unblocks_up_to_the_end_when_later_records_have_wrapped() -> None:
    ring = make_ring()
    move_to(ring, CAPACITY - 24)
    add_i64(ring, CAPACITY + ring_buffer.TAIL, 24)
    assert not ring_buffer_reader.unblock(ring)
    write(ring, b"next")
    assert ring_buffer_reader.unblock(ring)
    assert read(ring) == (TYPE, b"next")


def test_correlation_ids_and_heartbeat_live_in_the_trailer() -> None:
    ring = make_ring()
    assert [int(ring_buffer.next_correlation_id(ring)) for _ in range(3)] == [0, 1, 2]
    assert get_i64(ring, CAPACITY + 512) == 3
    ring_buffer.set_consumer_heartbeat_ms(ring, 1_700_000_000_000)
    assert get_i64(ring, CAPACITY + 640) == 1_700_000_000_000
    assert ring_buffer.consumer_heartbeat_ms(ring) == 1_700_000_000_000


@pytest.mark.parametrize(
    "length", [1, 7, 33 + 8, CAPACITY + 8, 2**31 - 1], ids=lambda length: f"length={length}"
)
def test_drops_an_invalid_length(length: int) -> None:
    ring = make_ring()
    write(ring, b"12345678")
    write(ring, b"x" * 16)
    put_i32(ring, 0, length)
    assert ring_buffer_reader.has_message(ring)
    type_id, dropped = ring_buffer_reader.read(ring, ring_buffer_reader.make_scratch(ring))
    assert type_id == ring_buffer_reader.CORRUPT
    assert dropped == 16
    assert read(ring) == (TYPE, b"x" * 16)
    assert ring_buffer.consumer_position(ring) == ring_buffer.producer_position(ring)
    assert_free_space_is_zero(ring)
    write(ring, b"alive")
    assert read(ring) == (TYPE, b"alive")


def test_drops_only_the_record_with_an_invalid_type() -> None:
    ring = make_ring()
    write(ring, b"bad")
    write(ring, b"good")
    put_i32(ring, ring_buffer.TYPE, 0)
    type_id, dropped = ring_buffer_reader.read(ring, ring_buffer_reader.make_scratch(ring))
    assert (type_id, dropped) == (ring_buffer_reader.CORRUPT, 16)
    assert read(ring) == (TYPE, b"good")


@pytest.mark.parametrize(("room", "expected"), [(16, TYPE), (15, ring_buffer_reader.CORRUPT)])
def test_never_writes_beyond_a_scratch(room: int, expected: int) -> None:
    ring = make_ring()
    write(ring, b"x" * 16)
    memory = np.zeros(32, dtype=np.uint8)
    type_id, _ = ring_buffer_reader.read(ring, memory[:room])
    assert type_id == expected
    assert not memory[room:].any()
    assert ring_buffer.consumer_position(ring) == 24


def test_does_not_unblock_an_empty_ring() -> None:
    ring = make_ring()
    ring[64] = 1
    assert not ring_buffer_reader.unblock(ring)
    assert (
        ring_buffer_reader.read(ring, ring_buffer_reader.make_scratch(ring))[0]
        == ring_buffer_reader.NO_MESSAGE
    )


@pytest.mark.parametrize("length", [-(2**31), -CAPACITY - 8, -4])
def test_unblocks_an_invalid_negative_length(length: int) -> None:
    ring = make_ring()
    ring_buffer.claim(ring, TYPE, 8)
    put_i32(ring, 0, length)
    assert ring_buffer_reader.unblock(ring)
    assert read(ring) == (ring_buffer_reader.NO_MESSAGE, b"")
    assert ring_buffer.consumer_position(ring) == 16


@pytest.mark.parametrize("length", [-(2**31), -CAPACITY - 8, -4, -8, -24, -64, -104])
def test_a_claim_with_a_wrong_length_hides_no_later_message(length: int) -> None:
    ring = make_ring()
    ring_buffer.claim(ring, TYPE, 20)
    messages = [bytes([number]) * (5 + 9 * number) for number in range(1, 4)]
    for message in messages:
        write(ring, message)
    put_i32(ring, 0, length)
    assert ring_buffer_reader.unblock(ring)
    if read(ring, ring_buffer_reader.peek)[0] == ring_buffer_reader.NO_MESSAGE:
        # The length was too short. The rest of the claim is a claim without a length.
        assert ring_buffer_reader.unblock(ring)
    assert [read(ring) for _ in range(4)] == [
        *((TYPE, message) for message in messages),
        (ring_buffer_reader.NO_MESSAGE, b""),
    ]
    assert_free_space_is_zero(ring)


@pytest.mark.parametrize("moved", [1, 3, 7, 8 * CAPACITY + 3, -8, -3, 1 << 40, -(1 << 50)])
def test_a_tail_that_was_moved_is_repaired(moved: int) -> None:
    ring = make_ring()
    move_to(ring, 3 * CAPACITY + 64)
    add_i64(ring, CAPACITY + ring_buffer.TAIL, moved)
    assert read(ring)[0] == ring_buffer_reader.CORRUPT
    for number in range(3 * CAPACITY // 16):
        assert write(ring, b"%08d" % number) == ring_buffer.OK
        assert read(ring) == (TYPE, b"%08d" % number)
    assert_free_space_is_zero(ring)


def test_a_tail_that_was_moved_back_loses_no_messages() -> None:
    ring = make_ring()
    for message in (b"first", b"second"):
        write(ring, message)
    add_i64(ring, CAPACITY + ring_buffer.TAIL, 3)
    assert read(ring)[0] == ring_buffer_reader.CORRUPT
    write(ring, b"third")
    assert [read(ring) for _ in range(3)] == [(TYPE, b"first"), (TYPE, b"second"), (TYPE, b"third")]


@pytest.mark.parametrize(
    ("length", "accepted"),
    [(64 + 768, True), (CAPACITY + 768, True), (32 + 768, False), (200 + 768, False), (768, False)],
)
def test_capacity_is_a_power_of_two(length: int, accepted: bool) -> None:
    assert ring_buffer.is_capacity(length) is accepted


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["write", "claim", "die", "commit", "abort", "read", "unblock"]),
        st.integers(0, LONGEST),
    ),
    max_size=80,
)


@given(operations=OPERATIONS, start=st.integers(0, 3 * CAPACITY // 8).map(lambda n: n * 8))
def test_agrees_with_the_naive_ring(operations: list[tuple[str, int]], start: int) -> None:
    ring, naive = make_ring(), NaiveRing(CAPACITY)
    move_to(ring, start)
    naive.head = naive.tail = start
    open_claims: list[tuple[int, Record]] = []
    for step, (name, number) in enumerate(operations):
        payload = bytes((step + at) & 0xFF for at in range(number))
        if name in ("write", "claim"):
            record = naive.claim(step + 1, payload)
            at = int(ring_buffer.claim(ring, step + 1, number))
            assert (at >= 0) == (record is not None)
            if record is not None:
                ring[at : at + number] = as_array(payload)
                open_claims.append((at, record))
                if name == "write":
                    _close(ring, open_claims, -1, "committed")
        elif name == "die":
            before = naive.tail
            if naive.claim(TYPE, payload, dies=True):
                add_i64(ring, CAPACITY + ring_buffer.TAIL, naive.tail - before)
        elif name in ("commit", "abort") and open_claims:
            state = "committed" if name == "commit" else "padding"
            _close(ring, open_claims, number % len(open_claims), state)
        elif name == "read":
            expected = naive.read() or (ring_buffer_reader.NO_MESSAGE, b"")
            assert read(ring) == expected
        elif name == "unblock":
            assert ring_buffer_reader.unblock(ring) == naive.unblock()
            open_claims = [claim for claim in open_claims if claim[1].state == "claimed"]
        assert ring_buffer.producer_position(ring) == naive.tail
        assert ring_buffer.consumer_position(ring) == naive.head
        assert_free_space_is_zero(ring)


def _close(ring: np.ndarray, claims: list[tuple[int, Record]], index: int, state: str) -> None:
    at, record = claims.pop(index)
    close = ring_buffer.commit if state == "committed" else ring_buffer.abort
    assert close(ring, at)
    record.state = state


@given(content=st.binary(min_size=64, max_size=64), trailer=st.binary(min_size=24, max_size=24))
def test_survives_any_bytes(content: bytes, trailer: bytes) -> None:
    """A hostile producer may write any bytes, also to the positions; each call still terminates."""
    ring = make_ring(64)
    ring[:64] = as_array(content)
    for field, at in ((ring_buffer.TAIL, 0), (ring_buffer.HEAD, 8), (ring_buffer.HEAD_CACHE, 16)):
        # Positions near the largest int would overflow after centuries; not before.
        ring[64 + field : 64 + field + 7] = as_array(trailer[at : at + 7])
    scratch = ring_buffer_reader.make_scratch(ring)
    for _ in range(12):
        ring_buffer_reader.unblock(ring)
        type_id, length = ring_buffer_reader.read(ring, scratch)
        assert type_id >= 1 or type_id in (
            ring_buffer_reader.NO_MESSAGE,
            ring_buffer_reader.CORRUPT,
        )
        assert 0 <= length <= 64
        ring_buffer.write(ring, TYPE, scratch, 0, 8)


@kernel
def write_many(ring, producer, source, count):
    """Write numbered messages. Stops if the buffer stays full. Returns the number written."""
    for number in range(count):
        put_i64(source, 0, producer)
        put_i64(source, 8, number)
        length = 16 + (number * 5) % 12
        refusals = 0
        while ring_buffer.write(ring, producer, source, 0, length) != ring_buffer.OK:
            refusals += 1
            if refusals > PATIENCE:
                return number
            system.yield_cpu()
    return count


@kernel
def read_many(ring, scratch, seen, turns):
    """Read up to `turns` times, counting in `seen`. Returns (messages, what is not as sent)."""
    messages, wrong = 0, 0
    for _ in range(turns):
        type_id, length = ring_buffer_reader.read(ring, scratch)
        if type_id == ring_buffer_reader.NO_MESSAGE:
            system.yield_cpu()
        elif type_id < 1 or type_id >= seen.size:
            wrong += 1
        else:
            number = get_i64(scratch, 8)
            good = get_i64(scratch, 0) == type_id and number == seen[type_id]
            wrong += 0 if good and length == 16 + (number * 5) % 12 else 1
            seen[type_id] = number + 1
            messages += 1
    return messages, wrong


def test_many_threads_lose_nothing() -> None:
    producers, count, turns = 3, *((150, 50) if JIT_DISABLED else (200_000, 10_000))
    ring = make_ring(1 << 14)
    scratch, seen = ring_buffer_reader.make_scratch(ring), np.zeros(producers + 1, dtype=np.int64)
    write_many(make_ring(), 1, np.zeros(64, dtype=np.uint8), 1)
    read_many(make_ring(), scratch, seen, 1)
    threads = [
        threading.Thread(
            target=write_many,
            args=(ring, producer, np.zeros(64, dtype=np.uint8), count),
            daemon=True,
        )
        for producer in range(1, producers + 1)
    ]
    for thread in threads:
        thread.start()
    wrong_in_all, messages, alive = 0, 0, True
    while messages or alive:
        alive = any(thread.is_alive() for thread in threads)
        messages, wrong = read_many(ring, scratch, seen, turns)
        wrong_in_all += wrong
    for thread in threads:
        thread.join()
    assert wrong_in_all == 0
    assert seen.tolist() == [0] + [count] * producers
    assert read(ring) == (ring_buffer_reader.NO_MESSAGE, b"")
    assert not ring[: 1 << 14].any()


@kernel
def claim_many(ring, places, arrived, thread):
    """Make a claim for each entry of `places`, concurrently with others."""
    wait_for_all(arrived, thread)
    for index in range(places.size):
        places[index] = ring_buffer.claim(ring, TYPE, 8)


def test_claims_do_not_overlap() -> None:
    count = 200 if JIT_DISABLED else 100_000
    ring, arrived = make_ring(1 << 22), np.zeros(2 * 8, dtype=np.uint8)
    parts = [np.zeros(count, dtype=np.int64) for _ in range(2)]
    claim_many(make_ring(), np.zeros(1, dtype=np.int64), np.zeros(8, dtype=np.uint8), 0)
    threads = [
        threading.Thread(target=claim_many, args=(ring, part, arrived, thread))
        for thread, part in enumerate(parts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    places = np.sort(np.concatenate(parts))
    assert (places == 8 + 16 * np.arange(2 * count)).all()


@kernel
def take_ids(ring, taken, arrived, thread):
    """Fill `taken` with correlation ids, concurrently with others."""
    wait_for_all(arrived, thread)
    for index in range(taken.size):
        taken[index] = ring_buffer.next_correlation_id(ring)


def test_no_correlation_id_is_returned_twice() -> None:
    ring, arrived = make_ring(), np.zeros(2 * 8, dtype=np.uint8)
    share = 500 if JIT_DISABLED else 1_000_000
    parts = [np.zeros(share, dtype=np.int64) for _ in range(2)]
    take_ids(make_ring(), np.zeros(1, dtype=np.int64), np.zeros(8, dtype=np.uint8), 0)
    threads = [
        threading.Thread(target=take_ids, args=(ring, part, arrived, thread))
        for thread, part in enumerate(parts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (np.sort(np.concatenate(parts)) == np.arange(2 * share)).all()
