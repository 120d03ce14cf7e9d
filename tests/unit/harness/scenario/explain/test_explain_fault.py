"""Descriptions of fault rules."""

import pytest

from tests.unit.harness.scenario.test_scenario_loader import GOOD
from windtunnel.harness.scenario.explain.explain_fault import choice_lines, fault_line
from windtunnel.harness.scenario.loader import parse_scenario
from windtunnel.harness.scenario.resolved.fault_case import FaultCase, resolve_fault

RULE = "{id: lose, where: {link: a->b}, what: {type: DATA}, act: {drop: 2%}}"


def resolved(rule: str) -> FaultCase:
    fault = parse_scenario(GOOD.replace(RULE, rule), "made.yaml").faults[0]
    return resolve_fault(fault, {1001: 0}, ["a->b"])


def rule(act: str, more: str = "", what: str = "type: DATA") -> str:
    return f"{{id: lose, where: {{link: a->b}}, what: {{{what}}}, {more} act: {{{act}}}}}"


@pytest.mark.parametrize(
    ("act", "text"),
    [
        ("drop: 2%", "2% of DATA on a->b dropped"),
        ("duplicate: {share: 1%, copies: 2}", "1% of DATA on a->b duplicated 2 times"),
        ("duplicate: {share: 1%, for: 3ms}", "1% of DATA on a->b duplicated after 3ms"),
        (
            "duplicate: {share: 1%, until: {advance: 64KiB}, at_most: 5s}",
            "duplicated when the stream has advanced by 64KiB, or after 5s",
        ),
        ("hold: {share: 1%, for: 5ms}", "delayed for 5ms"),
        (
            "hold: {share: 1%, until: {consumed: true}, at_most: 250ms}",
            "delayed until the receiver has acknowledged them, at most 250ms",
        ),
        (
            "hold: {share: 1%, until: {repeated: true}, at_most: 1s}",
            "until their position has been retransmitted",
        ),
        ("hold: {share: 1%, until: {frames: 3}, at_most: 1s}", "until 3 others have passed"),
        ("displace: {share: 1%, by: 5}", "reordered by 5 frames, at most 100ms"),
        ("corrupt: {share: 1%, field: version, bits: 2}", "corrupted: 2 bits of version"),
        ("truncate: {share: 1%, to: 100B}", "truncated to 100B"),
        ("inject: {frames: [{type: PAD}]}", "100% of DATA on a->b followed by forged frames: PAD"),
        ("readdress: {source_port: 40001}", "sent from another port, 40001"),
    ],
)
def test_describes_the_action(act, text):
    assert text in fault_line(resolved(rule(act)), ["a->b"])


def test_all_types_are_described_as_every_frame():
    line = fault_line(resolved(rule("drop: always", what="type: ANY")), ["lon->nyc", "nyc->lon"])
    assert line == "100% of every frame on lon->nyc, nyc->lon dropped"


@pytest.mark.parametrize(
    ("more", "what", "line"),
    [
        ("", "type: DATA, stream: 1001", "of stream 1001"),
        ("", "type: DATA, session: 1", "of session 1 of the stream"),
        ("", "type: DATA, flags: {set: begin, clear: end}", "with flags 0x80 under mask 0xc0"),
        ("", "type: DATA, position: {from: 1KiB, length: 64B}", "64B at position 1KiB"),
        ("", "type: DATA, position: {every: 1KiB}", "1B at position 0B, repeated every 1KiB"),
        ("", "type: DATA, position: {at: term-end}", "the last frame of each term"),
        ("attempt: 1,", "type: DATA", "attempt 1"),
        ("attempt: {from: 2},", "type: DATA", "attempt 2 and later"),
        ("", "type: SETUP, order: {from: 1, to: 9, every: 2}", "order 1 to 9, in steps of 2"),
        (
            "when: {after: 2s, for: 3ms},",
            "type: DATA",
            "starting 2s after the first DATA frame, for 3ms",
        ),
        (
            "when: {reached: {stream: 1001, position: 512KiB}, for: 1ms, every: 2ms},",
            "type: DATA",
            "starting when stream 1001 reaches 512KiB, for 1ms, repeated every 2ms",
        ),
        (
            "when: {until: {stream: 1001, position: 512KiB}},",
            "type: DATA",
            "starting at the first DATA frame, until stream 1001 reaches 512KiB",
        ),
    ],
)
def test_describes_conditions(more, what, line):
    assert list(choice_lines(resolved(rule("drop: 1%", more, what)), [1001])) == [line]


def test_a_rule_without_conditions_has_no_condition_lines():
    assert list(choice_lines(resolved(RULE), [1001])) == []


def test_bursts_are_described_by_their_mean_length():
    found = resolved(rule("drop: {good_to_bad: 1%, bad_to_good: 20%}"))
    assert list(choice_lines(found, [1001])) == ["in bursts of 5.0 on average (two states)"]
