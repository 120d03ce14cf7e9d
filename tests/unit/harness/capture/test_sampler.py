"""A pass over the counters reports changed values, and the counters that they belong to."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.sampler import Observer
from windtunnel.harness.capture.sampler import Sampler
from windtunnel.harness.dissect.driver_files import cnc_file
from windtunnel.harness.dissect.driver_files.cnc_file import METADATA, VALUE, CncFile

CAPACITY = 8
NOW_NS = 1_700_000_000_000_000_000


def empty_cnc() -> CncFile:
    return CncFile(
        version=512,
        pid=1,
        start_timestamp_ms=1,
        client_liveness_timeout_ns=1,
        heartbeat=np.array([1], dtype=np.int64),
        metadata=np.zeros(CAPACITY, dtype=METADATA),
        values=np.zeros(CAPACITY, dtype=VALUE),
        error_log=np.zeros(64, dtype=np.uint8),
    )


def allocate(cnc, counter_id, type_id, label=b"x"):
    """Allocate a counter as a driver does: the value is reset, and the state is set last."""
    cnc.values[counter_id] = 0
    meta = cnc.metadata[counter_id]
    meta["type_id"] = type_id
    meta["label_length"] = len(label)
    meta["label"][: len(label)] = list(label)
    meta["state"] = cnc_file.ALLOCATED


def register(cnc, counter_id, registration_id):
    cnc.values["registration_id"][counter_id] = registration_id


def free(cnc, counter_id):
    cnc.metadata["state"][counter_id] = cnc_file.RECLAIMED
    cnc.metadata["key"][counter_id] = 0


def rows(samples):
    return [(int(s["counter_id"]), int(s["registration_id"]), int(s["value"])) for s in samples]


@pytest.fixture
def cnc():
    return empty_cnc()


def test_an_empty_file_gives_no_samples(cnc):
    sampler = Sampler(cnc)
    assert len(sampler.sample(NOW_NS)) == 0
    assert sampler.counters() == []


def test_a_new_counter_is_reported_even_if_it_is_zero(cnc):
    allocate(cnc, 0, type_id=9)
    register(cnc, 0, 77)
    samples = Sampler(cnc).sample(NOW_NS)
    assert rows(samples) == [(0, 77, 0)]
    assert samples["time_ns"][0] == NOW_NS
    assert samples["type_id"][0] == 9


def test_only_what_has_changed_is_reported(cnc):
    for counter_id in range(3):
        allocate(cnc, counter_id, type_id=1)
        register(cnc, counter_id, 10 + counter_id)
    sampler = Sampler(cnc)
    assert len(sampler.sample(NOW_NS)) == 3
    assert len(sampler.sample(NOW_NS + 1)) == 0
    cnc.values["value"][1] = -5
    assert rows(sampler.sample(NOW_NS + 2)) == [(1, 11, -5)]


def test_the_last_value_of_a_freed_counter_is_not_missed(cnc):
    allocate(cnc, 0, type_id=1)
    register(cnc, 0, 10)
    sampler = Sampler(cnc)
    sampler.sample(NOW_NS)
    cnc.values["value"][0] = 4096
    free(cnc, 0)
    assert rows(sampler.sample(NOW_NS + 1)) == [(0, 10, 4096)]
    assert sampler.counters()[0].final_value == 4096


def test_a_key_that_was_cleared_on_free_is_still_known(cnc):
    allocate(cnc, 0, type_id=1)
    cnc.metadata["key"][0][:4] = [1, 2, 3, 4]
    sampler = Sampler(cnc)
    sampler.sample(NOW_NS)
    free(cnc, 0)
    sampler.sample(NOW_NS + 1)
    assert sampler.counters()[0].key_hex.startswith("01020304")


def test_a_reused_id_is_another_counter(cnc):
    allocate(cnc, 0, type_id=1, label=b"first")
    register(cnc, 0, 10)
    cnc.values["value"][0] = 5
    sampler = Sampler(cnc)
    sampler.sample(NOW_NS)
    cnc.values["value"][0] = 6
    free(cnc, 0)
    sampler.sample(NOW_NS + 1)
    allocate(cnc, 0, type_id=2, label=b"next")
    register(cnc, 0, 11)
    cnc.values["value"][0] = 5
    assert rows(sampler.sample(NOW_NS + 2)) == [(0, 11, 5)]
    first, following = sampler.counters()
    assert (first.type_id, first.label, first.registration_id, first.final_value) == (
        *(1, "first"),
        *(10, 6),
    )
    assert (following.type_id, following.label, following.registration_id) == (2, "next", 11)


def test_a_counter_without_registration_that_is_freed_makes_room_for_another(cnc):
    allocate(cnc, 0, type_id=1)
    sampler = Sampler(cnc)
    sampler.sample(NOW_NS)
    free(cnc, 0)
    sampler.sample(NOW_NS + 1)
    allocate(cnc, 0, type_id=2)
    sampler.sample(NOW_NS + 2)
    assert [each.type_id for each in sampler.counters()] == [1, 2]


def test_an_id_seen_before_its_registration_remains_one_counter(cnc):
    allocate(cnc, 0, type_id=1)
    sampler = Sampler(cnc)
    sampler.sample(NOW_NS)
    register(cnc, 0, 10)
    assert rows(sampler.sample(NOW_NS + 1)) == [(0, 10, 0)]
    assert [each.registration_id for each in sampler.counters()] == [10]


def test_an_id_that_is_reset_but_not_yet_allocated_reports_nothing(cnc):
    allocate(cnc, 0, type_id=1)
    register(cnc, 0, 10)
    cnc.values["value"][0] = 5
    sampler = Sampler(cnc)
    sampler.sample(NOW_NS)
    free(cnc, 0)
    cnc.values[0] = 0
    assert len(sampler.sample(NOW_NS + 1)) == 0
    assert sampler.counters()[0].final_value == 5


def test_a_label_that_grows_is_reported_in_full(cnc):
    allocate(cnc, 0, type_id=11, label=b"client")
    register(cnc, 0, 10)
    sampler = Sampler(cnc)
    sampler.sample(NOW_NS)
    cnc.metadata["label"][0][6:10] = list(b" x=1")
    cnc.metadata["label_length"][0] = 10
    assert sampler.counters()[0].label == "client x=1"


def test_a_file_that_is_full_is_read_to_its_end(cnc):
    for counter_id in range(CAPACITY):
        allocate(cnc, counter_id, type_id=1)
    assert len(Sampler(cnc).sample(NOW_NS)) == CAPACITY


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["take", "value", "free", "look"]),
        st.integers(0, CAPACITY - 1),
        st.integers(-3, 3),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(events=EVENTS)
def test_agrees_with_an_observer_of_every_change(events):
    cnc, observer = empty_cnc(), Observer()
    sampler = Sampler(cnc)
    state = {}
    reported = {}
    registration_id = 100

    def look():
        observer.look()
        for counter_id, registration, value in rows(sampler.sample(NOW_NS)):
            reported.setdefault((counter_id, registration), []).append(value)

    for action, counter_id, value in events:
        counter_id = min(counter_id, len(state))
        if action == "take" and counter_id < CAPACITY and state.get(counter_id) != "allocated":
            # a driver keeps a freed id for a second, so that each pass finds it freed
            look()
            registration_id += 1
            allocate(cnc, counter_id, type_id=counter_id)
            register(cnc, counter_id, registration_id)
            observer.on_allocated(counter_id, counter_id)
            observer.on_registered(counter_id, registration_id)
            state[counter_id] = "allocated"
        elif action == "value" and state.get(counter_id) == "allocated":
            cnc.values["value"][counter_id] = value
            observer.on_value(counter_id, value)
        elif action == "free" and state.get(counter_id) == "allocated":
            look()  # no counter comes and goes between two passes
            free(cnc, counter_id)
            state[counter_id] = "freed"
        elif action == "look":
            look()
    look()
    assert reported == {(e.counter_id, e.registration_id): e.seen for e in observer.lifetimes}
    assert [
        (e.counter_id, e.type_id, e.registration_id, e.final_value) for e in sampler.counters()
    ] == [(e.counter_id, e.type_id, e.registration_id, e.value) for e in observer.lifetimes]
