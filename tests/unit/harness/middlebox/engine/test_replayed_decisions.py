"""A replay applies the recorded decisions to the same frames, and to no others."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.middlebox import NaiveMiddlebox
from tests.unit.harness.middlebox.engine.test_engine_and_twin import LONG_STREAM_FAULTS, long_stream
from tests.unit.harness.middlebox.synthetic_case import (
    A_TO_B,
    B_TO_A,
    ENVELOPE,
    SESSION,
    ByteEngine,
    case,
    data,
    fault,
    nak,
    setup,
    status_message,
    with_more,
)
from windtunnel.harness.artifact.middlebox.decision import (
    DECISION,
    IDENTITY,
    DecisionLogError,
    read_replayable,
)
from windtunnel.harness.artifact.records import write_records
from windtunnel.harness.middlebox.engine.replayed_decisions import (
    REPLAYED_DECISION,
    ReplayError,
    compile_decisions,
    find,
)
from windtunnel.harness.middlebox.relay.report import rule_accounts
from windtunnel.harness.scenario.resolved.fault_case import CountCase, PlaceCase, WhenCase

MS = 1_000_000
EVERY = PlaceCase(kind="range", start=64, length=1, every=256)


def through(made, *events, replayed=None):
    """Return an engine that has processed datagrams, and the datagrams that it sent."""
    driven = ByteEngine(made, replayed=replayed)
    sent = [leaves for frames, link in events for leaves in driven.offer(frames, link)]
    return driven, sent


def replayed(made, decisions, *events):
    return through(made, *events, replayed=compile_decisions(made, decisions))


def rows(records):
    return [{name: int(each[name]) for name in DECISION.names} for each in records]


def long_run(middlebox, release, pace_ns):
    sent = []
    for number, (datagram, link) in enumerate(long_stream(9)):
        now_ns = (number + 1) * pace_ns
        sent += release(middlebox, now_ns)
        sent += middlebox.offer(datagram, link, now_ns)
    return sent + release(middlebox, 10**12)


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("name", LONG_STREAM_FAULTS)
def test_repeats_every_decision_at_another_pace_and_with_another_seed(name):
    made = case(LONG_STREAM_FAULTS[name], seed=5)
    first = ByteEngine(made)
    long_run(first, ByteEngine.release, MS // 7)
    other = case(LONG_STREAM_FAULTS[name], seed=6)
    again = ByteEngine(other, replayed=compile_decisions(other, first.decisions.copy()))
    long_run(again, ByteEngine.release, MS // 3)
    assert len(first.decisions) > 0
    for names in (IDENTITY, ("rule", "action", "detail", "delay_ns")):
        found, wanted = (
            [[row[each] for each in names] for row in rows(one.decisions)] for one in (again, first)
        )
        assert found == wanted
    accounts = rule_accounts(again.engine, other)
    assert accounts["rule"].eligible == accounts["rule"].selected == len(first.decisions)
    assert again.engine.replayed["is_used"].all()


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("name", LONG_STREAM_FAULTS)
def test_agrees_with_the_reference(name):
    made = case(LONG_STREAM_FAULTS[name], seed=5)
    first = ByteEngine(made)
    long_run(first, ByteEngine.release, MS // 7)
    chosen = first.decisions[::3].copy()
    driven = ByteEngine(made, replayed=compile_decisions(made, chosen))
    naive = NaiveMiddlebox(made, replayed=rows(chosen))
    sent = []
    for number, (datagram, link) in enumerate(long_stream(9)):
        now_ns = (number + 1) * MS // 7
        sent += driven.release(now_ns)
        naive.release(now_ns)
        sent += driven.offer(datagram, link, now_ns)
        naive.offer(ENVELOPE, datagram, link, now_ns)
    sent += driven.release(10**12)
    naive.release(10**12)
    assert sent == naive.sent
    assert rows(driven.decisions) == naive.decisions
    assert len(naive.decisions) == len(chosen) > 0


def test_frames_without_a_decision_pass_although_a_rule_matches():
    made = case(fault("drop"))
    driven, sent = replayed(made, np.zeros(0, dtype=DECISION), (setup(), A_TO_B), (data(0), A_TO_B))
    assert [frames for _, _, frames in sent] == [setup(), data(0)]
    assert len(driven.decisions) == 0


def test_only_the_same_attempt_is_affected():
    second = with_more(fault("drop"), attempt=CountCase(first=2, last=2))
    passages = [(setup(), A_TO_B), *[(data(0), A_TO_B)] * 3]
    first, _ = through(case(second), *passages)
    driven, sent = replayed(case(second), first.decisions.copy(), *passages)
    assert [frames for _, _, frames in sent] == [setup(), data(0), data(0)]
    assert driven.decisions["attempt"].tolist() == [2]


def test_a_session_is_identified_by_its_number_and_not_by_its_id():
    def stream(session):
        return (setup(session=session), A_TO_B), (data(0, session=session), A_TO_B)

    made = case(fault("drop"))
    first, _ = through(made, *stream(SESSION))
    driven, sent = replayed(made, first.decisions.copy(), *stream(77), *stream(78))
    assert [frames for _, _, frames in sent] == [
        setup(session=77),
        setup(session=78),
        data(0, session=78),
    ]
    assert driven.decisions["session_id"].tolist() == [77]


def test_frames_without_a_position_are_identified_by_their_order():
    third = with_more(fault("drop", 1.0, ("NAK",), ("b->a",)), order=CountCase(first=3, last=3))
    first, _ = through(case(third), (setup(), A_TO_B), *[(nak(), B_TO_A)] * 4)
    naks = [(nak(offset=32 * at), B_TO_A) for at in range(4)]
    driven, sent = replayed(
        case(third), first.decisions.copy(), (setup(), A_TO_B), (status_message(), B_TO_A), *naks
    )
    assert [frames for _, _, frames in sent[2:]] == [nak(offset=0), nak(offset=32), nak(offset=96)]
    assert driven.decisions["order"].tolist() == [3]


def test_time_does_not_matter():
    timed = with_more(fault("drop"), when=WhenCase(after_ns=5 * MS))
    first = ByteEngine(case(timed))
    first.offer(setup())
    first.offer(data(0), now_ns=1)
    first.offer(data(64), now_ns=6 * MS)
    again = ByteEngine(case(timed), replayed=compile_decisions(case(timed), first.decisions.copy()))
    sent = [again.frames(each, now_ns=1) for each in (setup(), data(0), data(64), data(128))]
    assert sent == [[setup()], [data(0)], [], [data(128)]]


def test_a_shorter_frame_is_not_extended_by_truncation():
    cut = with_more(fault("truncate", 1.0, ("DATA", "SM"), ("a->b", "b->a")), cut_to_bytes=80)
    first, _ = through(case(cut), (setup(), A_TO_B), (data(0, 128), A_TO_B))
    assert first.decisions["detail"].tolist() == [80]
    _, sent = replayed(case(cut), first.decisions.copy(), (setup(), A_TO_B), (data(0, 64), A_TO_B))
    assert sent[-1][2] == data(0, 64)


def log_of(made):
    driven, _ = through(made, (setup(), A_TO_B), (data(64), A_TO_B), (status_message(), B_TO_A))
    return driven.decisions.copy()


BOTH = case(
    with_more(fault("drop", 1.0, ("DATA",)), place=EVERY, id="data"),
    fault("drop", 1.0, ("SM",), ("b->a",), name="status"),
)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("rule", 2, "expected one of 2 rules, found rule 2"),
        ("action", 2, "expected drop, the action of rule 0, found duplicate"),
        ("action", 77, "found 77"),
        ("link", 2, "expected one of 2 link directions, found 2"),
        ("stream_id", 9, "expected one of the streams 1001, 1002, 0, found 9"),
        ("frame_type", 0x1FF, "frames of class 511 have no position, found position 64"),
        ("frame_type", 3, "frames of class 3 have no position, found position 64"),
        ("position", -2, "expected position >= 0 and attempt >= 1, found -2 and 1"),
        ("attempt", 0, "expected position >= 0 and attempt >= 1, found 64 and 0"),
        ("detail", -1, "at least 0, found -1"),
    ],
)
def test_refuses_impossible_decisions(field, value, text):
    records = log_of(BOTH)
    assert len(compile_decisions(BOTH, records)) == 2
    records[field][0] = value
    with pytest.raises(ReplayError, match="decision 1 of 2: ") as refused:
        compile_decisions(BOTH, records)
    assert text in str(refused.value)


def test_refuses_an_order_below_one():
    records = log_of(BOTH)
    records["order"][1] = -4
    with pytest.raises(ReplayError, match="at least 1, found -4"):
        compile_decisions(BOTH, records)


@settings(max_examples=200)
@given(
    st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=12),
    st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=20),
)
def test_finds_the_same_as_a_list(keys, wanted):
    decisions = np.zeros(len(keys), dtype=REPLAYED_DECISION)
    for index, (decision, key) in enumerate(zip(decisions, sorted(keys), strict=True)):
        decision["what"], decision["place"], decision["attempt"] = key
        decision["rule"] = index
    left = sorted(keys)
    for key in wanted:
        found = find(decisions, *key)
        assert (found >= 0) == (key in left)
        if found >= 0:
            decisions[found]["is_used"] = 1
            left.remove(key)
            assert (
                tuple(int(decisions[found][name]) for name in ("what", "place", "attempt")) == key
            )


def test_a_complete_log_can_be_replayed(tmp_path):
    path = tmp_path / "decisions.bin"
    write_records(path, log_of(BOTH))
    assert len(read_replayable(path)) == 2


def test_a_log_that_is_missing_truncated_or_too_old_cannot_be_replayed(tmp_path):
    path = tmp_path / "decisions.bin"
    with pytest.raises(DecisionLogError, match="expected a decision log"):
        read_replayable(path)
    write_records(path, log_of(BOTH))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(DecisionLogError, match="expected a multiple of 64 bytes, found 127"):
        read_replayable(path)
    for field in ("session", "order"):
        records = log_of(BOTH)
        records[field] = 0
        write_records(path, records)
        with pytest.raises(DecisionLogError, match=r"of 2 does not identify its .* older version"):
            read_replayable(path)


def test_an_old_log_reads_as_it_was_written(tmp_path):
    """In a log without `session` and `order`, all other fields have the same offsets."""
    old = np.dtype(
        [
            *(("time_ns", "<i8"), ("rule", "<u2"), ("action", "u1"), ("link", "u1")),
            *(("frame_type", "<u2"), ("flags", "u1"), ("timing_sensitive", "u1")),
            *((name, "<i4") for name in ("session_id", "stream_id", "term_id", "term_offset")),
            *(("frame_length", "<i4"), ("position", "<i8"), ("attempt", "<i4")),
            *(("delay_ns", "<i8"), ("detail", "<i8")),
        ]
    )
    record = np.array([(1, 255, 3, 1, 256, 5, 1, -6, 7, -8, 9, 10, 11, 12, 13, 524_287)], dtype=old)
    read = np.frombuffer(record.tobytes(), dtype=DECISION)[0]
    assert {name: int(read[name]) for name in old.names} == {
        name: int(record[0][name]) for name in old.names
    }
    assert (int(read["session"]), int(read["order"])) == (0, 0)
