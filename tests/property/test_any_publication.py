"""Arbitrary sequences of messages: both kinds of publication agree with the reference."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive import publication as naive
from windtunnel.driver.base.arith import I32_MAX, wrap_i32
from windtunnel.driver.logbuffer import appender, cleaner, descriptor
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.driver.logbuffer.parameters import LogParameters, initialise

TERM_LENGTH = 65536
META = 3 * TERM_LENGTH
UNLIMITED = 1 << 62
SOURCE = (np.arange(20000) % 253).astype(np.uint8)
LENGTHS = st.one_of(st.integers(0, 8192), st.sampled_from([0, 1, 32, 1376, 1377, 2752, 8192]))
WAYS = st.sampled_from(["offer", "vectored", "batch", "claim", "padding"])


def publications(kind: int, initial: int, count: int, offset: int, mtu: int) -> tuple:
    """Return a stream's state and log, and its reference implementation."""
    log = np.zeros(META + 4096, dtype=np.uint8)
    chosen = LogParameters(
        type=kind,
        correlation_id=1,
        session_id=-2,
        stream_id=3,
        initial_term_id=initial,
        term_length=TERM_LENGTH,
        mtu_length=mtu,
        start_term_id=wrap_i32(initial + count),
        start_term_offset=offset,
    )
    initialise(log, META, chosen)
    twin = naive.Publication(-2, 3, initial, TERM_LENGTH, mtu, count, offset)
    return appender.attach(log, META), log, twin


def write(state: np.ndarray, log: np.ndarray, way: str, at: int, length: int) -> int:
    """Write SOURCE[at : at + length] into the log in one of several ways."""
    if way == "vectored":
        half = length // 2
        ranges = np.array([[at, half], [at + half, length - half]], dtype=np.int64)
        return int(appender.offer_vectored(state, log, UNLIMITED, SOURCE, ranges, at))
    if way == "batch":
        values = np.full(8, 0x7F, dtype=np.uint8)
        lengths = np.array([length], dtype=np.int64)
        batch = appender.offer_batch(state, log, values, 0, SOURCE, at, lengths, 0, 1)
        return int(batch[1])
    if way == "claim":
        outcome = int(appender.claim(state, log, UNLIMITED, length))
        if outcome > 0:
            payload = int(state[0].claim_at) + 32
            log[payload : payload + length] = SOURCE[at : at + length]
            assert appender.commit(log, int(state[0].claim_at))
        return outcome
    if way == "padding":
        return int(appender.append_padding(state, log, UNLIMITED, length))
    return int(appender.offer(state, log, UNLIMITED, SOURCE, at, length, at))


@settings(max_examples=60)
@given(
    st.sampled_from([descriptor.CONCURRENT_PUBLICATION, descriptor.EXCLUSIVE_PUBLICATION]),
    st.sampled_from([0, -3, I32_MAX - 1]),
    st.integers(0, 7),
    st.sampled_from([0, 40000, TERM_LENGTH - 32]),
    st.sampled_from([64, 1408, 8192]),
    st.lists(st.tuples(WAYS, st.integers(0, 9000), LENGTHS), max_size=25),
)
def test_writing(
    kind: int, initial: int, count: int, offset: int, mtu: int, messages: list
) -> None:
    state, log, twin = publications(kind, initial, count, offset, mtu)
    for way, at, wanted in messages:
        length = min(wanted, mtu - 32) if way == "claim" else wanted
        if way == "padding" and kind == descriptor.CONCURRENT_PUBLICATION:
            assert write(state, log, way, at, length) == result.ERROR
            continue
        outcome = result.ADMIN_ACTION
        while outcome == result.ADMIN_ACTION:
            following = (twin.term_count + 1) % 3
            cleaner.clean(log, following * TERM_LENGTH, 0, TERM_LENGTH)
            outcome = write(state, log, way, at, length)
            if way == "padding":
                assert outcome == twin.append_padding(length)
            else:
                reserved = at if way in ("offer", "vectored") else 0
                assert outcome == twin.offer(bytes(SOURCE[at : at + length]), reserved)
        assert outcome == descriptor.producer_position(log, META) == twin.position
    for index in range(3):
        if index != (twin.term_count + 1) % 3:
            term = log[index * TERM_LENGTH : (index + 1) * TERM_LENGTH]
            assert bytes(term) == bytes(twin.terms[index])
        raw = int(descriptor.raw_tail_acquire(log, META, index))
        assert (raw >> 32, raw & 0xFFFFFFFF) == twin.tails[index]
