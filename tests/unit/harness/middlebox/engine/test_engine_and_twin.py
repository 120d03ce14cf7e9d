"""Arbitrary rules and traffic: the engine equals its reference implementation, byte by byte."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.naive.fault_rules import CLASS_INDEX
from tests.naive.middlebox import NaiveMiddlebox
from tests.unit.harness.middlebox.synthetic_case import (
    A_TO_B,
    B_TO_A,
    BILLION,
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
from windtunnel.harness.middlebox.engine.state import HELD_BYTES, HELD_COUNT, SESSION_OVERFLOWS
from windtunnel.harness.middlebox.relay.report import link_account, rule_accounts
from windtunnel.harness.middlebox.rules import CLASSES
from windtunnel.harness.scenario.resolved.fault_case import (
    CountCase,
    ForgedCase,
    PlaceCase,
    ReachedCase,
    WhenCase,
)

MS = 1_000_000
F0, F1 = data(0), data(64)
FRAMES = st.one_of(
    st.builds(lambda at: [data(32 * at, 32 + 7 * at % 90)], st.integers(0, 3000)),
    st.builds(
        lambda at, count: [data(32 * at + 64 * index) for index in range(count)],
        st.integers(0, 100),
        st.integers(1, 20),
    ),
    st.builds(
        lambda at, count: [
            *(data(32 * at + 64 * index) for index in range(count)),
            data(32 * at + 64 * count, 960, kind=0),
        ],
        st.integers(0, 100),
        st.integers(0, 3),
    ),
    st.builds(lambda at: [data(32 * at, stream=STREAM_2)], st.integers(0, 20)),
    st.sampled_from([[setup()], [setup(STREAM_2)], [setup(initial=5)], [setup(term_length=99)]]),
    st.sampled_from([[setup(term_length=2 * TERM_LENGTH)], [data(TERM_LENGTH)]]),
    st.sampled_from([[heartbeat()], [status_message()], [nak()], [nak(stream=9)]]),
    st.builds(lambda raw: [raw], st.binary(max_size=100)),
    st.builds(lambda raw: [F0, F1, raw], st.binary(min_size=1, max_size=70)),
)
EVENTS = st.lists(
    st.tuples(FRAMES, st.integers(0, 1), st.integers(-MS // 4, 2 * MS), st.booleans()), max_size=30
)
TYPES = st.sets(
    st.sampled_from(["DATA", "PAD", "HEARTBEAT", "SETUP", "SM", "NAK", "RTTM"]), min_size=1
)
LINK_SETS = st.sampled_from([("a->b",), ("b->a",), ("a->b", "b->a")])

PLACED = st.sets(st.sampled_from(["DATA", "PAD"]), min_size=1)
SHARES = st.floats(0.05, 1)
DELAYS = st.integers(1, 3 * MS)
PPB = st.integers(0, BILLION)
FORGED = st.builds(
    ForgedCase,
    type=st.sampled_from(["DATA", "PAD", "HEARTBEAT", "SETUP", "SM", "NAK", "RTTM", "ERR"]),
    advance=st.integers(-TERM_LENGTH, 3 * TERM_LENGTH),
    term_end=st.none() | st.integers(-128, 64),
    shift=st.integers(-40, 40),
    term=st.integers(-3, 3),
    is_same_session=st.booleans(),
    is_same_stream=st.booleans(),
    is_same_receiver=st.booleans(),
    version=st.sampled_from([0, 0, 1, 255]),
    flags=st.none() | st.integers(0, 255),
    length=st.none() | st.integers(-64, 200),
    window_bytes=st.integers(0, 1 << 20),
)
COUNTED = st.builds(
    lambda first, more, every: CountCase(first=first, last=first + more, every=every),
    st.integers(1, 3),
    st.integers(0, 5),
    st.integers(1, 3),
)
POINTS = st.none() | st.builds(
    ReachedCase, ordinal=st.integers(0, 1), position=st.integers(0, TERM_LENGTH)
)
PLACES = [
    PlaceCase(kind="range", start=320, length=3000),
    PlaceCase(kind="range", start=64, length=40, every=256),
    PlaceCase(kind="term-start"),
    PlaceCase(kind="term-end"),
    PlaceCase(kind="ranges", ranges=((0, 40), (40, 8), (640, 1), (2000, 900))),
]
CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "ordinals": st.sampled_from([(0,), (1,), (0, 1)]),
        "session": st.integers(1, 2),
        "flags_value": st.sampled_from([0xC0, 0x80, 0]),
        "place": st.sampled_from(PLACES),
        "order": COUNTED,
        "attempt": COUNTED,
        "when": st.builds(
            WhenCase,
            after_ns=st.integers(0, MS),
            for_ns=st.sampled_from([0, MS]),
            every_ns=st.sampled_from([0, 2 * MS]),
            reached=POINTS,
            until=POINTS,
        ),
        "chance": st.sampled_from(["two states", "four states"]),
    },
)
COPIES = st.integers(1, 4)
FEW = st.integers(1, 5)
ENDINGS = st.one_of(
    st.tuples(st.just("frames"), FEW),
    st.tuples(st.just("advance"), st.integers(1, 2000)),
    st.tuples(st.sampled_from(["consumed", "repeated"]), st.just(0)),
)
UNTIL = st.builds(
    lambda ns, ending, copies: {
        "hold_ns": ns,
        "ending": ending[0],
        "ending_value": ending[1],
        "copies": copies,
    },
    DELAYS,
    ENDINGS,
    COPIES,
)
FIELDS = st.sampled_from(["frame-length", "version", "flags", "type", "session-id"])
ACTS = st.one_of(
    st.tuples(st.just("drop"), TYPES, st.just({})),
    st.tuples(st.just("duplicate"), TYPES, st.builds(dict, copies=COPIES)),
    st.tuples(st.just("duplicate"), TYPES, st.builds(dict, copies=COPIES, hold_ns=DELAYS)),
    st.tuples(st.just("hold"), TYPES, st.builds(dict, hold_ns=DELAYS)),
    st.tuples(st.sampled_from(["hold", "duplicate"]), PLACED, UNTIL),
    st.tuples(st.just("swap"), PLACED, st.just({})),
    st.tuples(
        st.just("displace"),
        PLACED,
        st.builds(dict, hold_ns=DELAYS, ending=st.just("frames"), ending_value=FEW),
    ),
    st.tuples(st.just("corrupt"), TYPES, st.builds(dict, field=FIELDS, bits=st.integers(1, 8))),
    st.tuples(st.just("corrupt"), st.just({"DATA"}), st.just({"field": "payload"})),
    st.tuples(st.just("truncate"), TYPES, st.builds(dict, cut_to_bytes=st.integers(0, 80))),
    st.tuples(
        st.just("inject"),
        TYPES,
        st.builds(dict, forged=st.lists(FORGED, min_size=1, max_size=3).map(tuple)),
    ),
    st.tuples(st.just("readdress"), TYPES, st.just({"source_port": 40001})),
)


@st.composite
def fault_cases(draw):
    """Draw a rule: an act on some types, with any of the conditions on their frames."""
    action, types, details = draw(ACTS)
    choices = dict(draw(CHOICES))
    if "chance" in choices:
        parts = 4 if choices["chance"] == "two states" else 5
        choices["chance_ppb"] = draw(st.tuples(*[PPB] * parts))
    if "flags_value" in choices:
        choices["flags_mask"] = 0xC0
    made = fault(action, draw(SHARES), tuple(sorted(types)), draw(LINK_SETS))
    return made.model_copy(update={**details, **choices})


FAULTS = st.lists(fault_cases(), max_size=4).map(
    lambda faults: [each.model_copy(update={"id": f"rule-{n}"}) for n, each in enumerate(faults)]
)


@settings(max_examples=400)
@given(EVENTS, FAULTS, st.integers(0, 2**63 - 1))
def test_agrees_with_the_reference(events, faults, seed):
    made = case(*faults, seed=seed)
    driven, naive = ByteEngine(made), NaiveMiddlebox(made)
    sent = []
    now_ns = 0
    events = [([setup()], A_TO_B, 10 * MS, False), *events]
    for number, (frames, link, pause_ns, releases) in enumerate(events):
        now_ns += pause_ns
        envelope = bytes([number % 256]) * (number % 60)
        if releases:
            sent += driven.release(now_ns)
            naive.release(now_ns)
        sent += driven.offer(b"".join(frames), link, now_ns, envelope)
        naive.offer(envelope, b"".join(frames), link, now_ns)
        assume(driven.engine.state[SESSION_OVERFLOWS] == 0)
        assert sent == naive.sent
    sent += driven.release(now_ns + 10 * MS)
    naive.release(now_ns + 10 * MS)
    assert sent == naive.sent
    found = [{name: int(row[name]) for name in row.dtype.names} for row in driven.decisions]
    assert found == naive.decisions
    for link in (A_TO_B, B_TO_A):
        _same_account(driven.engine, naive, link)
    accounts = rule_accounts(driven.engine, made)
    assert {
        key: [each.eligible, each.selected] for key, each in accounts.items()
    } == naive.rules.tallies


def _same_account(engine, naive, link):
    account = link_account(engine, link)
    counts = naive.datagrams.get(link, {})
    assert account.datagrams_in == counts.get("in", 0)
    assert account.datagrams_out == counts.get("out", 0)
    assert account.datagrams_dropped == counts.get("dropped", 0)
    assert account.datagrams_added == counts.get("added", 0)
    assert account.datagrams_held_at_end == 0
    assert account.unaccounted == 0
    columns = ("in", "out", "dropped", "duplicated", "held", "swapped")
    columns += ("forged", "damaged_from", "damaged_into", "other_streams")
    for name, index in CLASS_INDEX.items():
        twin = naive.frames.get((link, name), {})
        assert engine.frames[link, index].tolist() == [twin.get(each, 0) for each in columns]
    assert len(CLASS_INDEX) == len(CLASSES)
    assert engine.state[HELD_COUNT] == engine.state[HELD_BYTES] == 0
    assert all(frames.unaccounted == 0 for frames in account.frames.values())


def chain(action, kind, *parts, **details):
    return with_more(fault(action, 0.1), chance=kind, chance_ppb=parts, **details)


def forged(**claims):
    every = PlaceCase(kind="range", start=64, length=1, every=4096)
    return with_more(fault("inject"), place=every, forged=(ForgedCase(**claims),))


PERCENT = BILLION // 100
LONG_STREAM_FAULTS = {
    "two states": chain("drop", "two states", 2 * PERCENT, 20 * PERCENT, 90 * PERCENT, PERCENT),
    "four states": chain(
        "drop", "four states", 5 * PERCENT, 30 * PERCENT, 40 * PERCENT, 30 * PERCENT, 5 * PERCENT
    ),
    "chain by order": with_more(
        fault("drop", 0.1, ("SM",), ("b->a",)),
        chance="four states",
        chance_ppb=(10 * PERCENT, 30 * PERCENT, 40 * PERCENT, 30 * PERCENT, 5 * PERCENT),
    ),
    "displace": with_more(fault("displace", 0.2), hold_ns=50 * MS, ending="frames", ending_value=3),
    "advance": with_more(fault("hold", 0.2), hold_ns=90 * MS, ending="advance", ending_value=4096),
    "consumed": with_more(fault("hold", 0.2), hold_ns=90 * MS, ending="consumed"),
    "repeated": with_more(fault("hold", 0.2), hold_ns=90 * MS, ending="repeated"),
    "late copies": with_more(
        fault("duplicate", 0.1), copies=2, hold_ns=90 * MS, ending="advance", ending_value=70_000
    ),
    "range": with_more(fault("drop"), place=PlaceCase(kind="range", start=60_000, length=9_000)),
    "many ranges": with_more(
        fault("drop"),
        place=PlaceCase(kind="ranges", ranges=tuple((at, 70) for at in range(50, 99_000, 1700))),
    ),
    "again and again": with_more(
        fault("drop"), place=PlaceCase(kind="range", start=96, length=33, every=1024)
    ),
    "term starts": with_more(fault("drop"), place=PlaceCase(kind="term-start")),
    "term ends": with_more(fault("drop", 1.0, ("DATA", "PAD")), place=PlaceCase(kind="term-end")),
    "second attempts": with_more(fault("drop"), attempt=CountCase(first=2, last=2)),
    "each third SM": with_more(
        fault("drop", 1.0, ("SM",), ("b->a",)), order=CountCase(first=2, every=3)
    ),
    "NAKs of a range": with_more(
        fault("drop", 1.0, ("NAK",), ("b->a",)),
        place=PlaceCase(kind="range", start=30_000, length=30_000),
    ),
    "whole messages": with_more(fault("drop", 0.3), flags_mask=0xE0, flags_value=0xC0),
    "second stream": with_more(fault("drop", 0.5), ordinals=(1,)),
    "pulses": with_more(
        fault("drop"), when=WhenCase(after_ns=5 * MS, for_ns=2 * MS, every_ns=11 * MS)
    ),
    "between points": with_more(
        fault("drop"),
        when=WhenCase(
            reached=ReachedCase(ordinal=0, position=20_000),
            until=ReachedCase(ordinal=0, position=40_000),
        ),
    ),
    "for a while after a point": with_more(
        fault("drop"),
        when=WhenCase(after_ns=MS, for_ns=9 * MS, reached=ReachedCase(ordinal=1, position=9_000)),
    ),
    "payload": with_more(fault("corrupt", 0.3), field="payload", bits=3),
    "version": with_more(fault("corrupt", 0.3, ("DATA", "PAD", "SM")), field="version"),
    "term offset": with_more(fault("corrupt", 0.3, ("DATA", "NAK", "SM")), field="term-offset"),
    "truncate": with_more(fault("truncate", 0.3, ("DATA", "PAD")), cut_to_bytes=40),
    "runt": with_more(fault("truncate", 0.3, ("DATA", "SM")), cut_to_bytes=4),
    "readdress": with_more(fault("readdress", 0.3), source_port=40_001),
    "PAD over the end": forged(type="PAD", term_end=-64, length=96),
    "PAD at the end": forged(type="PAD", term_end=0),
    "wrong session": forged(type="DATA", is_same_session=False, payload_length=100),
    "misaligned": forged(type="DATA", shift=4, payload_length=7),
    "far ahead": forged(type="DATA", advance=1 << 20, payload_length=100),
    "long ago": forged(type="DATA", advance=-(1 << 17), term=-1),
    "forged SM": with_more(
        fault("inject", 0.2, ("SM",), ("b->a",)),
        forged=(ForgedCase(type="SM", advance=-4096, window_bytes=1 << 20),),
    ),
}


def long_stream(seed):
    """Return datagrams of two streams over several terms, with feedback, and their links."""
    random = np.random.default_rng(seed)
    yield setup(), A_TO_B
    yield setup(STREAM_2), A_TO_B
    at = {STREAM_1: 0, STREAM_2: 0}
    sent, ends = [], {STREAM_1: [0], STREAM_2: [0]}
    while at[STREAM_1] < 2.5 * TERM_LENGTH:
        stream = int(random.choice([STREAM_1, STREAM_1, STREAM_2]))
        batch = []
        for _ in range(int(random.integers(1, 6))):
            left = TERM_LENGTH - at[stream] % TERM_LENGTH
            length = int(random.integers(32, 600))
            if (length + 31) // 32 * 32 > left:
                batch.append(data(at[stream], left, stream, kind=0))
            else:
                batch.append(data(at[stream], length, stream))
            at[stream] += min(left, (length + 31) // 32 * 32)
            ends[stream].append(at[stream])
            if batch[-1][6] == 0:
                break
        sent.append(b"".join(batch))
        yield sent[-1], A_TO_B
        kind = random.integers(0, 8)
        consumed = int(random.choice(ends[stream][-20:]))
        if kind == 0:
            yield status_message(stream, offset=consumed % TERM_LENGTH), B_TO_A
        elif kind == 1:
            yield nak(stream, offset=consumed % TERM_LENGTH // 32 * 32), B_TO_A
        elif kind == 2:
            yield sent[-int(random.integers(1, min(9, len(sent)) + 1))], A_TO_B
        elif kind == 3:
            yield heartbeat(at[stream] % TERM_LENGTH, stream), A_TO_B


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("name", LONG_STREAM_FAULTS)
def test_agrees_with_the_reference_on_a_long_stream(name):
    made = case(LONG_STREAM_FAULTS[name], seed=5)
    driven, naive = ByteEngine(made), NaiveMiddlebox(made)
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
    found = [{key: int(row[key]) for key in row.dtype.names} for row in driven.decisions]
    assert found == naive.decisions
    for link in (A_TO_B, B_TO_A):
        _same_account(driven.engine, naive, link)
    ((eligible, matched),) = naive.rules.tallies.values()
    assert len(found) == matched > 0
    assert rule_accounts(driven.engine, made)["rule"].eligible == eligible
