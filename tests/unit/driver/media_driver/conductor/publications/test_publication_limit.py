"""Publication limits over many positions, for network and IPC."""

import struct
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.driver.base.atomics import address_of
from windtunnel.driver.cnc import counters
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.media_driver.agent import duty_cycle
from windtunnel.driver.media_driver.conductor import conductor_state
from windtunnel.driver.media_driver.conductor.images.subscriber_positions import PositionPool
from windtunnel.driver.media_driver.conductor.publications import publication_limit
from windtunnel.driver.media_driver.receiver import receiver_state
from windtunnel.driver.media_driver.sender import network_publication, sender_state

TERM, BITS = 65_536, 16
META_AT = 3 * TERM
METADATA_LENGTH = 512
"""Of those, the fields in use."""
WINDOW = TERM // 2
PUB_POS, PUB_LMT, SND_POS, FIRST_READER = 0, 1, 2, 3


class Limits:
    """One publication. The test acts as its sender, readers and publishers."""

    def __init__(self, kind=publication_limit.NETWORK):
        self.values = np.zeros(128 * 16, np.uint8)
        cycle = duty_cycle.make_duty_cycle(14, 15, 1 << 40)
        sender = sender_state.make_sender_state(self.values, cycle, publications=2, endpoints=2)
        receiver = receiver_state.make_receiver_state(self.values, cycle, images=2, endpoints=2)
        self.state = conductor_state.make_conductor_state(
            self.values,
            np.zeros(4096, np.uint8),
            np.zeros(1 << 16, np.uint8),
            sender,
            receiver,
            cycle,
            limits=2,
            subscribers=8,
        )
        self.words = sender.words
        self.log = np.full(3 * TERM + 4096, 0xAA, np.uint8)
        self.log[META_AT:] = 0
        self.log[META_AT + descriptor.TERM_LENGTH :][:4] = np.frombuffer(
            np.int32(TERM).tobytes(), np.uint8
        )
        self.rec = self.state.limits[1]
        self.rec.kind, self.rec.slot = kind, 1
        self.rec.log_address, self.rec.log_length = address_of(self.log), self.log.size
        self.rec.meta_at, self.rec.term_length, self.rec.bits = META_AT, TERM, BITS
        self.rec.window_length, self.rec.first_subscriber = WINDOW, -1
        self.rec.pub_pos_id, self.rec.pub_lmt_id, self.rec.snd_pos_id = PUB_POS, PUB_LMT, SND_POS
        self.pool = PositionPool(self.state.subscribers)
        self.readers = 0
        descriptor.put_is_connected_release(self.log, META_AT, 1)
        self.produce(0)

    def produce(self, position):
        count = position >> BITS
        raw = (count << 32) | (position & (TERM - 1))
        at = META_AT + 8 * (count % 3)
        self.log[at : at + 8] = np.frombuffer(np.int64(raw).tobytes(), np.uint8)
        self.log[META_AT + 24 : META_AT + 28] = np.frombuffer(np.int32(count).tobytes(), np.uint8)

    def add_reader(self, position):
        counters.set(self.values, FIRST_READER + self.readers, position)
        self.pool.add(self.rec, FIRST_READER + self.readers)
        self.readers += 1

    def listen(self, is_heard=1):
        network_publication.set_has_required_receivers_release(self.words, 1, is_heard)

    def put(self, counter_id, position):
        counters.set(self.values, counter_id, position)

    def update(self, times=1):
        for _ in range(times):
            publication_limit.update(self.state, 1)
        return int(counters.get(self.values, PUB_LMT))

    def is_connected(self):
        return bool(descriptor.is_connected_acquire(self.log, META_AT))


def test_a_connected_publication_may_be_a_window_ahead_of_the_sender():
    limits = Limits()
    assert limits.update() == 0
    limits.listen()
    assert limits.update() == WINDOW
    limits.put(SND_POS, 4096)
    assert limits.update() == 4096 + WINDOW


def test_a_spy_back_pressures_publishers_but_does_not_connect_them():
    limits = Limits()
    limits.add_reader(0)
    assert limits.update() == 0
    limits.listen()
    limits.put(SND_POS, 8192)
    assert limits.update() == WINDOW
    limits.put(FIRST_READER, 16_384)
    assert limits.update() == 8192 + WINDOW


def test_a_spy_may_simulate_a_connection():
    limits = Limits()
    limits.rec.spies_simulate_connection = 1
    assert limits.update() == 0
    limits.add_reader(64)
    assert limits.update() == WINDOW


def test_without_receivers_the_limit_is_the_sender_position():
    limits = Limits()
    limits.listen()
    limits.put(SND_POS, 4096)
    limits.update()
    limits.listen(0)
    assert limits.update() == 4096
    assert not limits.is_connected()


def test_pub_pos_follows_the_producer_and_stays_inside_its_term():
    limits = Limits()
    for position, expected in ((96, 96), (TERM + 32, TERM + 32)):
        limits.produce(position)
        limits.update()
        assert counters.get(limits.values, PUB_POS) == expected
    raw = (1 << 32) | (TERM + 4096)
    limits.log[META_AT + 8 : META_AT + 16] = np.frombuffer(np.int64(raw).tobytes(), np.uint8)
    limits.update()
    assert counters.get(limits.values, PUB_POS) == 2 * TERM


@given(st.lists(st.integers(0, TERM), min_size=1, max_size=30))
def test_the_limit_excludes_terms_that_are_not_clean(steps):
    """At any pace of the sender, the space below the limit contains only zeros."""
    limits = Limits()
    limits.log[:META_AT] = 0
    limits.listen()
    sent, written = 0, 0
    for step in steps:
        limit = limits.update(2)
        assert limit - sent <= WINDOW
        while written < limit:
            at = written % META_AT
            assert not limits.log[at : at + 1024].any(), written
            limits.log[at : at + 1024] = 0xAA
            written += 1024
        sent = min(sent + step - step % 32, written)
        limits.put(SND_POS, sent)


def test_the_limit_waits_until_the_dirty_terms_before_it_are_clean():
    limits = Limits()
    limits.listen()
    limits.put(SND_POS, 3 * TERM)
    assert limits.update() == 0
    assert limits.update() == 3 * TERM + WINDOW
    assert limits.rec.clean_position == 2 * TERM


def test_the_ipc_limit_follows_the_slowest_reader_in_steps():
    limits = Limits(publication_limit.IPC)
    limits.add_reader(0)
    limits.add_reader(WINDOW)
    assert limits.update() == WINDOW
    limits.put(FIRST_READER, WINDOW // 8)
    assert limits.update() == WINDOW
    limits.put(FIRST_READER, WINDOW // 8 + 32)
    assert limits.update() == WINDOW + WINDOW // 8 + 32
    assert limits.rec.consumer_position == WINDOW
    assert not limits.log[: WINDOW // 8 + 32].any()
    assert limits.log[WINDOW // 8 + 32 : TERM].all()


def test_without_readers_the_ipc_limit_is_the_position_of_the_fastest():
    limits = Limits(publication_limit.IPC)
    limits.add_reader(2048)
    limits.update()
    limits.pool.remove(limits.rec, int(limits.rec.first_subscriber))
    assert limits.update() == 2048
    assert limits.rec.trip_limit == 2048


@pytest.mark.parametrize("position", [-(2**62), -1, 7, 2**62 + 5])
@pytest.mark.parametrize("kind", [publication_limit.NETWORK, publication_limit.IPC])
def test_no_position_written_by_a_reader_changes_bytes_outside_the_log(kind, position):
    limits = Limits(kind)
    surroundings = types.SimpleNamespace(meta=limits.log[META_AT + 128 :].copy())
    limits.listen()
    limits.add_reader(position)
    limits.put(SND_POS, 2**62)
    limits.update(3)
    assert np.array_equal(limits.log[META_AT + 128 :], surroundings.meta)


def naive_produced(initial_term_id, term_id, offset):
    terms = (term_id - initial_term_id + 2**31) % 2**32 - 2**31
    return max(0, terms * TERM + min(offset, TERM))


@given(
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(0, 2**32 - 1),
    st.binary(min_size=METADATA_LENGTH, max_size=METADATA_LENGTH),
)
def test_only_tails_and_active_term_count_are_read_from_writable_metadata(
    initial_term_id, term_id, offset, garbage
):
    limits = Limits()
    limits.rec.initial_term_id = initial_term_id
    limits.log[META_AT : META_AT + METADATA_LENGTH] = np.frombuffer(garbage, np.uint8)
    (count,) = struct.unpack_from("<i", garbage, descriptor.ACTIVE_TERM_COUNT)
    tail = np.int64((term_id << 32) | offset)
    at = META_AT + 8 * (count % 3)
    limits.log[at : at + 8] = np.frombuffer(tail.tobytes(), np.uint8)
    limits.update()
    produced = int(counters.get(limits.values, PUB_POS))
    assert produced == naive_produced(initial_term_id, term_id, offset)
