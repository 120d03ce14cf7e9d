"""The rule engine: each act alone, then arbitrary traffic, compared with the reference."""

import numpy as np
import pytest

from tests.unit.harness.middlebox.synthetic_case import (
    A_TO_B,
    B_TO_A,
    ENVELOPE,
    STREAM_1,
    STREAM_2,
    TERM_LENGTH,
    ByteEngine,
    case,
    data,
    fault,
    heartbeat,
    nak,
    setup,
    status_message,
    with_more,
)
from windtunnel.harness.artifact.middlebox import decision
from windtunnel.harness.middlebox.engine.state import DECISIONS, HOLD_OVERFLOWS, SESSION_OVERFLOWS
from windtunnel.harness.middlebox.relay.report import link_account

MS = 1_000_000
LONG_HOLD = fault("hold", types=("PAD",), hold_ns=10_000 * MS)
F0, F1, F2, F3 = (data(at) for at in (0, 64, 128, 192))


def seed_where(chosen, action="drop", positions=(0, 64, 128, 192), **settings):
    """Return a seed for which a rule with share 0.5 matches exactly these of four frames."""
    for seed in range(2000):
        driven = ByteEngine(case(fault(action, 0.5, **settings), seed=seed))
        driven.offer(setup())
        for at in positions:
            driven.offer(data(at))
        if {int(each) for each in driven.decisions["position"]} == set(chosen):
            return seed
    raise AssertionError("no such seed")


def ready(*faults, seed=99):
    driven = ByteEngine(case(*faults, seed=seed))
    assert driven.frames(setup()) == [setup()]
    return driven


def test_passes_everything_without_rules():
    driven = ready()
    for datagram in (
        F0 + F1,
        heartbeat(),
        status_message(),
        nak(),
        b"",
        b"x",
        F0[:40],
        b"\xff" * 99,
    ):
        assert driven.offer(datagram, now_ns=5) == [(A_TO_B, ENVELOPE, datagram)]
    assert len(driven.decisions) == 0
    assert link_account(driven.engine, A_TO_B).unaccounted == 0


def test_drops_a_whole_datagram():
    driven = ready(fault("drop"))
    assert driven.frames(F0) == []
    account = link_account(driven.engine, A_TO_B)
    assert (account.datagrams_in, account.datagrams_out, account.datagrams_dropped) == (2, 1, 1)
    assert account.frames["DATA"].dropped == 1


@pytest.mark.parametrize(
    ("chosen", "runs"),
    [
        ((0,), [F1 + F2 + F3]),
        ((64,), [F0, F2 + F3]),
        ((192,), [F0 + F1 + F2]),
        ((64, 128), [F0, F3]),
        ((0, 128), [F1, F3]),
    ],
)
def test_removes_dropped_frames_from_a_datagram(chosen, runs):
    driven = ready(fault("drop", 0.5), seed=seed_where(chosen))
    assert driven.frames(F0 + F1 + F2 + F3) == runs
    account = link_account(driven.engine, A_TO_B)
    assert account.datagrams_added == len(runs) - 1
    assert account.unaccounted == 0


def test_a_copy_is_sent_alone_after_its_datagram():
    driven = ready(fault("duplicate", 0.5), seed=seed_where((64, 128), "duplicate"))
    assert driven.frames(F0 + F1 + F2 + F3) == [F0 + F1 + F2 + F3, F1, F2]
    account = link_account(driven.engine, A_TO_B)
    assert account.datagrams_added == 2
    assert (account.frames["DATA"].received, account.frames["DATA"].sent) == (4, 6)


def test_a_held_frame_is_sent_when_it_is_due_and_not_before():
    seed = seed_where((64,), "hold", hold_ns=5 * MS)
    driven = ready(fault("hold", 0.5, hold_ns=5 * MS), seed=seed)
    assert driven.frames(F0 + F1 + F2 + F3, now_ns=100) == [F0, F2 + F3]
    assert link_account(driven.engine, A_TO_B).datagrams_held_at_end == 1
    assert driven.release(100 + 5 * MS - 1) == []
    assert driven.release(100 + 5 * MS) == [(A_TO_B, ENVELOPE, F1)]
    assert link_account(driven.engine, A_TO_B).datagrams_held_at_end == 0
    assert driven.decisions["delay_ns"].tolist() == [5 * MS]


def test_a_swapped_frame_is_sent_after_its_neighbour_in_the_same_datagram():
    driven = ready(fault("swap", 0.5), seed=seed_where((64,), "swap"))
    assert driven.frames(F0 + F1 + F2 + F3) == [F0, F2, F1, F3]
    assert link_account(driven.engine, A_TO_B).unaccounted == 0
    assert driven.release(10 * MS) == []


def test_a_swapped_frame_waits_for_its_neighbour_in_a_later_datagram():
    driven = ready(fault("swap", 0.5), seed=seed_where((64,), "swap"))
    assert driven.frames(F0 + F1) == [F0]
    assert driven.frames(heartbeat()) == [heartbeat()]
    assert driven.frames(data(0, stream=STREAM_2)) == [data(0, stream=STREAM_2)]
    assert driven.frames(F2) == [F2, F1]


def test_two_swapped_neighbours_are_sent_together_in_their_order():
    driven = ready(fault("swap", 0.5), seed=seed_where((64, 128), "swap"))
    assert driven.frames(F0 + F1 + F2 + F3) == [F0, F3, F1, F2]


def test_a_swapped_frame_without_a_neighbour_is_sent_after_a_millisecond():
    driven = ready(fault("swap"))
    assert driven.frames(F0, now_ns=7) == []
    assert driven.release(7 + MS - 1) == []
    assert driven.release(7 + MS) == [(A_TO_B, ENVELOPE, F0)]


def test_clocks_that_step_back_lose_no_swapped_frame():
    driven = ready(fault("swap", 0.5), seed=seed_where((0, 64, 128), "swap"))
    for frame, now_ns in ((F0, 50 * MS), (F1, 20 * MS)):
        assert driven.frames(frame, now_ns=now_ns) == []
    assert driven.release(30 * MS) == [(A_TO_B, ENVELOPE, F1)]
    assert driven.frames(F2, now_ns=31 * MS) == []
    assert driven.frames(F3, now_ns=31 * MS) == [F3, F0, F2]


def test_the_first_rule_that_matches_decides():
    driven = ready(fault("drop", types=("PAD",)), fault("duplicate"), fault("drop"))
    assert driven.frames(F0) == [F0, F0]
    assert driven.decisions["rule"].tolist() == [1]


def test_a_rule_matches_on_its_link_and_its_types_only():
    driven = ready(fault("drop", types=("SM", "NAK"), links=("b->a",)))
    assert driven.frames(F0) == [F0]
    assert driven.frames(status_message(), link=A_TO_B) == [status_message()]
    assert driven.frames(status_message(), link=B_TO_A) == []
    assert driven.frames(nak(), link=B_TO_A) == []
    assert driven.frames(heartbeat(), link=B_TO_A) == [heartbeat()]


def test_a_heartbeat_is_not_data():
    driven = ready(fault("drop"))
    assert driven.frames(heartbeat()) == [heartbeat()]


def test_streams_that_are_not_in_the_case_pass():
    driven = ready(fault("drop"))
    frame_of_other_stream = data(0, stream=5)
    assert driven.frames(frame_of_other_stream) == [frame_of_other_stream]


def test_publications_without_end_are_counted_once_their_room_is_used_up():
    driven = ready(fault("drop"))
    room = len(driven.engine.sessions)
    for session in range(room + 1):
        driven.offer(setup(session=session))
        driven.offer(setup(session=session, stream=5))
    assert driven.engine.state[SESSION_OVERFLOWS] == 2
    driven.offer(data(64, session=room - 2))
    driven.offer(data(64, session=room))
    assert driven.decisions["position"].tolist() == [64, decision.NO_POSITION]


def test_a_damaged_datagram_passes_unchanged():
    driven = ready(fault("drop"))
    damaged = F0 + F1[:-1]
    assert driven.frames(damaged) == [damaged]
    account = link_account(driven.engine, A_TO_B)
    assert account.frames["DATA"].received == 1
    assert account.frames["MALFORMED"].sent == 1


def test_a_decision_names_the_frame():
    driven = ready(fault("drop"))
    at = 5 * TERM_LENGTH + 96
    driven.offer(data(at, 100), now_ns=321)
    entry = driven.decisions[0]
    found = {name: int(entry[name]) for name in decision.DECISION.names}
    assert found == {
        "time_ns": 321,
        "rule": 0,
        "action": decision.DROP,
        "link": A_TO_B,
        "frame_type": 1,
        "flags": 0xC0,
        "timing_sensitive": 0,
        "session_id": 7001,
        "stream_id": STREAM_1,
        "term_id": 2,
        "term_offset": 96,
        "frame_length": 128,
        "position": at,
        "attempt": 1,
        "delay_ns": 0,
        "detail": 0,
        "session": 1,
        "order": 0,
    }


def test_attempts_count_each_passage_of_a_position():
    driven = ready(fault("drop"))
    for _ in range(3):
        driven.offer(F1)
    driven.offer(F2)
    assert driven.decisions["attempt"].tolist() == [1, 2, 3, 1]


def test_attempts_restart_when_a_term_reuses_a_slot():
    driven = ready(fault("drop"))
    for term in (0, 4, 4, 8, 0):
        driven.offer(data(term * TERM_LENGTH))
    assert driven.decisions["attempt"].tolist() == [1, 1, 2, 1, 1]


def test_positions_increase_when_the_term_id_wraps():
    driven = ByteEngine(case(fault("drop")))
    driven.offer(setup(initial=2**31 - 2))
    for term in range(4):
        driven.offer(data(term * TERM_LENGTH, initial=2**31 - 2))
    assert driven.decisions["term_id"].tolist() == [2**31 - 2, 2**31 - 1, -(2**31), -(2**31) + 1]
    assert (driven.decisions["position"] // TERM_LENGTH).tolist() == [0, 1, 2, 3]


def test_a_new_setup_of_the_same_session_restarts_attempts():
    driven = ready(fault("drop", types=("DATA",)))
    driven.offer(F1)
    driven.offer(setup())
    driven.offer(F1)
    driven.offer(setup(term_length=2 * TERM_LENGTH))
    driven.offer(F1)
    driven.offer(data(TERM_LENGTH))
    assert driven.decisions["attempt"].tolist() == [1, 2, 1, 1]
    assert driven.decisions["position"].tolist() == [64, 64, 64, 2 * TERM_LENGTH]


def test_a_swapped_frame_survives_a_new_setup_of_its_session():
    driven = ready(fault("swap", types=("DATA",)))
    assert driven.frames(F0) == []
    assert driven.frames(setup(term_length=2 * TERM_LENGTH)) == [setup(term_length=2 * TERM_LENGTH)]
    pad = data(64, 960, kind=0)
    assert driven.frames(pad) == [pad, F0]


def test_data_before_its_setup_has_no_position():
    driven = ByteEngine(case(fault("drop")))
    driven.offer(F1)
    assert driven.decisions["position"].tolist() == [decision.NO_POSITION]
    assert driven.decisions["timing_sensitive"].tolist() == [1]


def test_a_full_heap_is_counted_and_frames_pass():
    driven = ready(fault("hold", hold_ns=MS))
    slots = len(driven.engine.held.records)
    for index in range(slots + 2):
        driven.offer(data(32 * 8 * index % TERM_LENGTH))
        driven.engine.state[DECISIONS] = 0
    assert driven.engine.state[HOLD_OVERFLOWS] == 2
    account = link_account(driven.engine, A_TO_B)
    assert account.frames["DATA"].sent == 2
    assert account.datagrams_held_at_end == slots
    assert account.unaccounted == slots
    assert len(driven.release(MS)) == slots
    assert link_account(driven.engine, A_TO_B).unaccounted == 0


def test_a_released_frame_takes_no_slot():
    """However late they were due: only frames that are still held take up slots."""
    driven = ready(with_more(LONG_HOLD, ending="frames", ending_value=1))
    slots = len(driven.engine.held.records)
    for index in range(slots + 2):
        pad = data(32 * 8 * index % TERM_LENGTH, 256, kind=0)
        assert driven.frames(pad) == []
        assert driven.frames(F0) == [F0, pad]
        driven.engine.state[DECISIONS] = 0
    assert driven.engine.state[HOLD_OVERFLOWS] == 0
    account = link_account(driven.engine, A_TO_B)
    assert account.datagrams_held_at_end == account.unaccounted == 0
    assert driven.release(20_000 * MS) == []


def test_the_outcome_of_a_frame_does_not_depend_on_batches_or_other_streams():
    faults = (fault("drop", 0.1), fault("hold", 0.1, hold_ns=MS), fault("swap", 0.1))
    seen = set()
    for variant in range(10):
        random = np.random.default_rng(variant)
        driven = ByteEngine(case(*faults))
        driven.offer(setup())
        driven.offer(setup(STREAM_2))
        pending = {stream: list(range(0, 40_000, 64)) for stream in (STREAM_1, STREAM_2)}
        while any(pending.values()):
            stream = int(random.choice([each for each, left in pending.items() if left]))
            count = int(random.integers(1, 23))
            batch, pending[stream] = pending[stream][:count], pending[stream][count:]
            driven.offer(b"".join(data(at, stream=stream) for at in batch))
            if random.integers(3) == 0:
                driven.offer(status_message(), B_TO_A)
                driven.offer(heartbeat(stream=stream))
        driven.release(10**9)
        fields = ["rule", "action", "stream_id", "position", "attempt"]
        chosen = sorted(driven.decisions[fields].tolist())
        seen.add(tuple(chosen))
        assert len(chosen) > 200
    assert len(seen) == 1
