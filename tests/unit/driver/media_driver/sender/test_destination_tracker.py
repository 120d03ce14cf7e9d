"""Destinations compared with a list, and each rule separately."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.naive.destinations import Destinations
from windtunnel.driver.channel.socket_address import SocketAddress, read_name, write_name
from windtunnel.driver.cnc import counters
from windtunnel.driver.media.send_endpoint import make_send_endpoints
from windtunnel.driver.media_driver.sender import destination_tracker as tracker

SLOT, COUNTER = 1, 3
FIRST = SLOT * tracker.DESTINATIONS_MAX
HOSTS = ("10.0.0.1", "10.0.0.2", "fe80::1")
ADDRESSES = [(host, port) for host in HOSTS for port in (40_001, 40_002)]


class Table:
    """One channel's destinations."""

    def __init__(self, mode):
        self.endpoints, _ = make_send_endpoints(3)
        self.rows = tracker.make_destinations(3)
        self.values = np.zeros(128 * 8, np.uint8)
        self.endpoints[SLOT].destinations_mode = mode
        self.endpoints[SLOT].destinations_id = COUNTER

    def name(self, address):
        name = np.zeros(28, np.uint8)
        return name, write_name(name, SocketAddress(*address) if address else None)

    def call(self, function, *middle):
        return int(function(self.endpoints, self.rows, SLOT, *middle) or 0)

    def add(self, registration, address, now):
        return self.call(tracker.add, self.values, registration, *self.name(address), now)

    def remove(self, address):
        self.call(tracker.remove, self.values, *self.name(address))

    def remove_by_id(self, registration):
        self.call(tracker.remove_by_id, self.values, registration)

    def change(self, registration, address):
        self.call(tracker.change_address, registration, *self.name(address))

    def on_status(self, receiver, address, now, is_accepted=False):
        self.call(tracker.on_status, self.values, receiver, *self.name(address), is_accepted, now)

    def expire(self, now):
        self.call(tracker.expire, self.values, now)

    def find(self, receiver, address):
        found = self.call(tracker.find, receiver, *self.name(address))
        return None if found == tracker.NOT_FOUND else found - FIRST

    def take_silent(self, now):
        found, silent = FIRST - 1, []
        while (found := self.call(tracker.next_silent, found, now)) != tracker.NOT_FOUND:
            silent.append(int(self.rows[found].registration_id))
        return silent

    def places(self):
        count = int(self.endpoints[SLOT].destinations_count)
        assert counters.get(self.values, COUNTER) == count
        return [
            SimpleNamespace(
                registration=int(row.registration_id),
                address=address and (address.host, address.port),
                last_status=int(row.last_activity_ns),
                receiver=int(row.receiver_id) if row.has_receiver_id else None,
            )
            for row in self.rows[FIRST : FIRST + count]
            for address in [read_name(row.name, int(row.name_length))]
        ]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["status"] * 4 + ["add", "remove", "by_id", "change", "expire", "silent"]),
        st.integers(1, 3),
        st.sampled_from(ADDRESSES),
        st.sampled_from([0, 1, tracker.TIMEOUT_NS // 2, tracker.TIMEOUT_NS]),
    ),
    max_size=40,
)


def rows_of(twin):
    return [
        {name: value for name, value in vars(place).items() if name != "accepted"}
        for place in twin.places
    ]


TWO_EQUAL_ONES = [
    ("status", 1, ADDRESSES[0], 0),
    *[("add", 1, ADDRESSES[1], 0)] * 2,
    ("add", 1, ADDRESSES[0], 0),
    ("status", 3, ADDRESSES[-1], 0),
    ("remove", 1, ADDRESSES[1], 0),
]


@given(steps=STEPS, is_dynamic=st.booleans())
@example(steps=TWO_EQUAL_ONES, is_dynamic=False)
def test_agrees_with_its_naive_twin(steps, is_dynamic):
    table = Table(tracker.DYNAMIC if is_dynamic else tracker.MANUAL)
    twin, now = Destinations(is_dynamic, tracker.TIMEOUT_NS), 0
    for number, (operation, receiver, address, delay) in enumerate(steps):
        now += delay
        if operation == "status":
            table.on_status(receiver, address, now, number % 3 == 0)
            twin.on_status(receiver, address, now, number % 3 == 0)
        elif operation == "add":
            nowhere = number % 4 == 0
            table.add(receiver, None if nowhere else address, now)
            twin.add(receiver, None if nowhere else address, now)
        elif operation == "remove":
            which = None if number % 4 == 0 else address
            table.remove(which)
            twin.remove(which)
        elif operation == "by_id":
            table.remove_by_id(receiver)
            twin.remove_by_id(receiver)
        elif operation == "change":
            table.change(receiver, address)
            twin.change(receiver, address)
        elif operation == "expire":
            table.expire(now)
            twin.expire(now)
        else:
            assert table.take_silent(now) == twin.take_silent(now)
        assert [vars(place) for place in table.places()] == rows_of(twin)
        found = twin.find(receiver, address)
        index = next((i for i, p in enumerate(twin.places) if p is found), None)
        assert table.find(receiver, address) == index
    assert not table.rows[:FIRST].last_activity_ns.any()


def test_a_receiver_keeps_its_entry_when_its_address_changes():
    table = Table(tracker.DYNAMIC)
    table.on_status(7, ("10.0.0.1", 40_001), 5)
    table.on_status(7, ("10.0.0.2", 40_001), 6)
    assert [place.address for place in table.places()] == [("10.0.0.1", 40_001)]
    table.on_status(7, ("10.0.0.1", 40_002), 7)
    assert len(table.places()) == 2


def test_two_receivers_at_one_address_are_distinguished_by_receiver_id():
    table = Table(tracker.MANUAL)
    table.add(1, ("10.0.0.1", 40_001), 0)
    assert table.find(7, ("10.0.0.1", 40_001)) == 0
    table.on_status(7, ("10.0.0.1", 40_001), 1)
    assert table.find(8, ("10.0.0.1", 40_001)) is None


def test_a_status_message_of_an_unknown_receiver_adds_nothing_in_manual_mode():
    table = Table(tracker.MANUAL)
    table.on_status(7, ("10.0.0.1", 40_001), 5)
    assert table.places() == []


@pytest.mark.parametrize(("age", "count"), [(tracker.TIMEOUT_NS, 1), (tracker.TIMEOUT_NS + 1, 0)])
def test_a_silent_destination_is_removed(age, count):
    table = Table(tracker.DYNAMIC)
    table.on_status(7, ("10.0.0.1", 40_001), 5)
    table.expire(5 + age)
    assert len(table.places()) == count


def test_a_full_table_takes_no_more_manual_destinations():
    table = Table(tracker.MANUAL)
    for number in range(tracker.DESTINATIONS_MAX):
        assert table.add(number, ("10.0.0.1", 1000 + number), 0) == FIRST + number
    assert table.add(-5, ("10.0.0.2", 1), 0) == tracker.NOT_FOUND
    table.on_status(7, ("10.0.0.2", 1), 0)
    assert len(table.places()) == tracker.DESTINATIONS_MAX
    assert not table.rows[FIRST + tracker.DESTINATIONS_MAX :].name_length.any()


SOME_HOSTS = [(f"10.1.0.{host}", port) for port in range(1, 900) for host in range(1, 7)]
CROWDS = st.lists(
    st.tuples(
        st.sampled_from(SOME_HOSTS), st.booleans(), st.sampled_from([0, 1, tracker.TIMEOUT_NS // 9])
    ),
    min_size=300,
    max_size=330,
    unique_by=lambda item: item[0],
)


@given(CROWDS)
@settings(max_examples=10, deadline=None)
def test_a_full_table_agrees_with_its_naive_twin(crowd):
    table, twin, now = Table(tracker.DYNAMIC), Destinations(True, tracker.TIMEOUT_NS), 0
    for number, (address, is_accepted, delay) in enumerate(crowd):
        now += delay
        table.on_status(number, address, now, is_accepted)
        twin.on_status(number, address, now, is_accepted)
    assert [vars(place) for place in table.places()] == rows_of(twin)


def fill(table, is_accepted):
    """Use all entries for receivers of four hosts."""
    for number in range(tracker.DESTINATIONS_MAX):
        table.on_status(number, (f"10.0.0.{number % 4}", 1000 + number), number, is_accepted)


def test_a_new_receiver_replaces_the_oldest_that_never_read_a_publication():
    table = Table(tracker.DYNAMIC)
    fill(table, is_accepted=False)
    table.on_status(0, ("10.0.0.0", 1000), 500, is_accepted=True)
    table.on_status(900, ("10.0.9.9", 1), 501)
    places = table.places()
    assert len(places) == tracker.DESTINATIONS_MAX
    assert places[1].address == ("10.0.9.9", 1)
    assert places[0].address == ("10.0.0.0", 1000)


def test_a_receiver_of_a_publication_is_not_replaced_until_it_is_silent():
    table = Table(tracker.DYNAMIC)
    fill(table, is_accepted=True)
    before = table.places()
    for now in (600, tracker.TIMEOUT_NS):
        table.on_status(900, ("10.0.9.9", 1), now, is_accepted=True)
        assert table.places() == before
    table.on_status(900, ("10.0.9.9", 1), tracker.TIMEOUT_NS + 1, is_accepted=True)
    assert table.places()[0].address == ("10.0.9.9", 1)


def test_one_host_uses_only_its_share_of_the_entries():
    table = Table(tracker.DYNAMIC)
    for number in range(tracker.HOST_DESTINATIONS_MAX + 5):
        table.on_status(number, ("10.0.0.1", 1000 + number), number, is_accepted=False)
    places = table.places()
    assert len(places) == tracker.HOST_DESTINATIONS_MAX
    assert [place.receiver for place in places[:6]] == [64, 65, 66, 67, 68, 5]
    table.on_status(900, ("10.0.9.9", 1), 600)
    assert len(table.places()) == tracker.HOST_DESTINATIONS_MAX + 1


def test_one_address_is_one_destination_whatever_receiver_ids_it_claims():
    table = Table(tracker.DYNAMIC)
    table.on_status(7, ("10.0.0.1", 40_001), 5, is_accepted=True)
    for receiver in range(100, 200):
        table.on_status(receiver, ("10.0.0.1", 40_001), 6)
    (place,) = table.places()
    assert (place.receiver, place.last_status) == (199, 6)
    assert table.rows[FIRST].accepted_ns == 5
    table.on_status(7, ("10.0.0.1", 40_002), 7)
    assert len(table.places()) == 2


def test_an_invalid_address_is_no_destination():
    table = Table(tracker.DYNAMIC)
    table.call(tracker.on_status, table.values, 7, np.zeros(28, np.uint8), 0, True, 5)
    assert table.places() == []


def test_only_one_of_two_equal_destinations_is_removed():
    table = Table(tracker.MANUAL)
    for registration in (1, 2, 3):
        table.add(registration, ADDRESSES[registration != 3], 0)
    table.remove(ADDRESSES[1])
    assert [place.registration for place in table.places()] == [1, 3]


def test_a_destination_without_an_address_is_removed_by_none():
    table = Table(tracker.MANUAL)
    table.add(1, ADDRESSES[0], 0)
    table.remove(None)
    assert len(table.places()) == 1
    table.add(2, None, 0)
    table.add(3, None, 0)
    table.remove(None)
    assert [place.registration for place in table.places()] == [1, 2]
