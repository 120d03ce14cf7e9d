"""Decisions converted to rules: the rules make the same decisions about the same frames."""

import numpy as np
import pytest

from tests.unit.harness.middlebox.engine.test_engine_and_twin import long_stream
from tests.unit.harness.middlebox.synthetic_case import A_TO_B, B_TO_A, ByteEngine, data, nak, setup
from windtunnel.harness.artifact.middlebox.decision import DECISION, IDENTITY
from windtunnel.harness.replay.document import parse, text_of
from windtunnel.harness.replay.rules import (
    always,
    merged,
    position,
    range_count,
    rules_of,
    simpler,
)
from windtunnel.harness.scenario.loader import ScenarioError
from windtunnel.harness.scenario.resolved.case import Payload
from windtunnel.harness.scenario.resolved.resolution import resolve

MS = 1_000_000
CHANNEL = "aeron:udp?endpoint=${b}:24325|mtu=1408|term-length=64k|init-term-id=-3|term-id=-3"
DOCUMENT = {
    "schema": "windtunnel/1",
    "name": "made/up",
    "about": "made up",
    "seeds": {"root": 5},
    "network": {"hosts": ["a", "b"], "link": {"between": ["a", "b"]}},
    "traffic": [
        {
            "id": f"t-{stream}",
            "stream": stream,
            "from": "a",
            "to": "b",
            "publication": "exclusive",
            "channel": f"{CHANNEL}|term-offset=0",
            "receive": "aeron:udp?endpoint=${b}:24325",
            "content": {"bytes": "1MiB"},
        }
        for stream in (1001, 1002)
    ],
    "expect": ["delivered_once"],
}
ACTS = {
    "drop": {"drop": "5%"},
    "late": {"hold": {"share": "5%", "for": "2ms"}},
    "until": {"hold": {"share": "9%", "until": {"consumed": True}, "at_most": "90ms"}},
    "copies": {"duplicate": {"share": "4%", "copies": 2}},
    "bursts": {"drop": {"good_to_bad": "2%", "bad_to_good": "30%"}},
    "forged": {"inject": {"share": "3%", "frames": [{"type": "PAD", "place": {"advance": "64B"}}]}},
    "cut": {"truncate": {"share": "5%", "to": "40B"}},
}


def case_of(faults):
    scenario = parse(text_of({**DOCUMENT, "faults": faults}, ["made up"]))
    payload = Payload(path="p", sha256="0" * 64, length_bytes=1)
    addresses = {"a": "10.64.0.3", "b": "10.64.0.19"}
    return resolve(scenario, seed=5, fidelity="sim", addresses=addresses, payload=payload)


def rule(name, act, types, link="a->b", **what):
    return {"id": name, "where": {"link": link}, "what": {"type": types, **what}, "act": act}


def decided(faults):
    driven = ByteEngine(case_of(faults))
    for number, (datagram, link) in enumerate(long_stream(9)):
        driven.release((number + 1) * MS // 7)
        driven.offer(datagram, link, (number + 1) * MS // 7)
    return driven.decisions.copy()


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("name", ACTS)
def test_rules_affect_the_same_frames_without_chance(name):
    given = [
        rule("some", ACTS[name], ["DATA", "PAD"]),
        rule("feedback", {"drop": "40%"}, ["SM", "NAK", "HEARTBEAT"], "both"),
    ]
    first = decided(given)
    rules = rules_of(first, [each["act"] for each in given], [("a", "b"), ("b", "a")])
    again = decided(rules)
    names = (*IDENTITY, "action", "detail", "delay_ns")
    assert len(first) > 50
    assert again[list(names)].tolist() == first[list(names)].tolist()
    assert {each.share_ppb for each in case_of(rules).faults} == {10**9}


def test_adjacent_frames_become_one_range():
    driven = ByteEngine(case_of([rule("all", {"drop": "always"}, "DATA")]))
    driven.offer(setup())
    for at in (0, 64, 128, 512):
        driven.offer(data(at))
    driven.offer(data(64))
    rules = rules_of(driven.decisions, [{"drop": "5%"}], [("x", "y"), ("y", "x")])
    assert rules == [
        {
            "id": "rule-1",
            "where": {"link": "x->y"},
            "what": {
                "type": "DATA",
                "stream": 1001,
                "position": {
                    "ranges": [
                        {"from": "0B", "length": "64B"},
                        {"from": "128B", "length": "64B"},
                        {"from": "512B", "length": "64B"},
                    ]
                },
            },
            "attempt": 1,
            "act": {"drop": "always"},
        },
        {
            "id": "rule-2",
            "where": {"link": "x->y"},
            "what": {
                "type": "DATA",
                "stream": 1001,
                "position": {"from": "64B", "length": "64B"},
            },
            "attempt": {"from": 1, "to": 2},
            "act": {"drop": "always"},
        },
    ]
    assert range_count(rules) == 4


def test_control_frames_are_identified_by_their_order():
    driven = ByteEngine(case_of([rule("all", {"drop": "always"}, "NAK", "b->a")]))
    driven.offer(setup(), A_TO_B)
    for _ in range(6):
        driven.offer(nak(), B_TO_A)
    chosen = driven.decisions[[0, 2, 3, 5]]
    rules = rules_of(chosen, [{"drop": "5%"}], [("a", "b"), ("b", "a")])
    assert [each["what"]["order"] for each in rules] == [1, {"from": 3, "to": 4}, 6]
    assert {each["where"]["link"] for each in rules} == {"b->a"}
    assert range_count(rules) == 3


def test_no_decisions_make_no_rules():
    assert rules_of(np.zeros(0, dtype=DECISION), [], [("a", "b"), ("b", "a")]) == []


@pytest.mark.parametrize(
    ("act", "wanted"),
    [
        ({"drop": "2%"}, {"drop": "always"}),
        ({"swap": {"p13": "1%", "p31": "20%"}}, {"swap": "always"}),
        ({"duplicate": "1%"}, {"duplicate": "always"}),
        (
            {"duplicate": {"share": "1%", "copies": 2}},
            {"duplicate": {"share": "always", "copies": 2}},
        ),
        ({"inject": {"share": "2%", "frames": [1]}}, {"inject": {"frames": [1]}}),
        ({"inject": {"frames": [1]}}, {"inject": {"frames": [1]}}),
        ({"readdress": {"source_port": 9}}, {"readdress": {"source_port": 9}}),
    ],
)
def test_an_act_that_is_always_applied(act, wanted):
    assert always(act) == wanted


def test_simpler_acts_come_in_order():
    hold = {"hold": {"share": "always", "until": {"frames": 3}, "at_most": "5ms"}}
    assert list(simpler(hold)) == [
        {"drop": "always"},
        {"hold": {"share": "always", "for": "5ms"}},
    ]
    assert list(simpler({"drop": "always"})) == []
    assert list(simpler({"readdress": {"source_port": 9}})) == []
    copies = {"duplicate": {"share": "always", "copies": 3, "for": "1ms"}}
    assert list(simpler(copies)) == [
        {"drop": "always"},
        {"duplicate": "always"},
        {"duplicate": {"share": "always", "for": "1ms"}},
    ]
    assert list(simpler({"inject": {"frames": [1, 2]}})) == [
        {"drop": "always"},
        {"inject": {"frames": [1]}},
        {"inject": {"frames": [2]}},
    ]


def test_ranges_that_touch_are_one():
    assert merged([(64, 96), (0, 32), (32, 64), (128, 130), (100, 129)]) == [(0, 96), (100, 130)]
    assert position([(1024, 2048)]) == {"from": "1KiB", "length": "1KiB"}


def test_ranges_out_of_order_are_refused():
    spans = [{"from": "64B", "length": "64B"}, {"from": "0B", "length": "64B"}]
    apart = [{"from": "0B", "length": "64B"}, {"from": "64B", "length": "64B"}]
    lapping = [{"from": "0B", "length": "65B"}, {"from": "64B", "length": "64B"}]

    def drop(ranges):
        return [rule("r", {"drop": "always"}, "DATA", position={"ranges": ranges})]

    assert case_of(drop(apart)).faults[0].place.ranges == ((0, 64), (64, 64))
    for wrong in (spans, lapping):
        with pytest.raises(ScenarioError, match="expected disjoint ranges in ascending order"):
            case_of(drop(wrong))
    with pytest.raises(ScenarioError, match="expected exactly one of: a range"):
        case_of(
            [rule("r", {"drop": "always"}, "DATA", position={"at": "term-end", "ranges": apart})]
        )
