"""Rules in words: what is written comes out again, and nothing that is not."""

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
        ("duplicate: {share: 1%, copies: 2}", "1% of DATA on a->b sent again 2 times"),
        ("duplicate: {share: 1%, for: 3ms}", "1% of DATA on a->b sent again after 3ms"),
        (
            "duplicate: {share: 1%, until: {advance: 64KiB}, at_most: 5s}",
            "sent again once the stream is 64KiB further, after 5s at most",
        ),
        ("hold: {share: 1%, for: 5ms}", "held back for 5ms"),
        (
            "hold: {share: 1%, until: {consumed: true}, at_most: 250ms}",
            "held back until the receiver needs them no more, for 250ms at most",
        ),
        (
            "hold: {share: 1%, until: {repeated: true}, at_most: 1s}",
            "until their position has passed again",
        ),
        ("hold: {share: 1%, until: {frames: 3}, at_most: 1s}", "until 3 others have passed"),
        ("displace: {share: 1%, by: 5}", "overtaken by 5 others, for 100ms at most"),
        ("corrupt: {share: 1%, field: version, bits: 2}", "damaged: 2 bits of version"),
        ("truncate: {share: 1%, to: 100B}", "cut off at 100B"),
        ("inject: {frames: [{type: PAD}]}", "100% of DATA on a->b followed by forged frames: PAD"),
        ("readdress: {source_port: 40001}", "sent from another port, 40001"),
    ],
)
def test_says_what_becomes_of_frames(act, text):
    assert text in fault_line(resolved(rule(act)))


def test_every_type_is_every_frame():
    line = fault_line(resolved(rule("drop: always", what="type: ANY")))
    assert line == "100% of every frame on a->b dropped"


@pytest.mark.parametrize(
    ("more", "what", "line"),
    [
        ("", "type: DATA, stream: 1001", "of stream 1001"),
        ("", "type: DATA, session: 2", "of session 2 of the stream"),
        ("", "type: DATA, flags: {set: begin, clear: end}", "with flags 0x80 under mask 0xc0"),
        ("", "type: DATA, position: {from: 1KiB, length: 64B}", "64B at position 1KiB"),
        ("", "type: DATA, position: {every: 1KiB}", "1B at position 0B, again every 1KiB"),
        ("", "type: DATA, position: {at: term-end}", "the last of each term"),
        ("attempt: 1,", "type: DATA", "attempt 1"),
        ("attempt: {from: 2},", "type: DATA", "attempt 2 and later"),
        ("", "type: SETUP, order: {from: 1, to: 9, every: 2}", "order 1 to 9, every 2."),
        (
            "when: {after: 2s, for: 3ms},",
            "type: DATA",
            "from 2s after the first DATA frame, for 3ms",
        ),
        (
            "when: {reached: {stream: 1001, position: 2MiB}, for: 1ms, every: 2ms},",
            "type: DATA",
            "from stream 1001 is at 2MiB, for 1ms, again every 2ms",
        ),
        (
            "when: {until: {stream: 1001, position: 2MiB}},",
            "type: DATA",
            "from the first DATA frame, until stream 1001 is at 2MiB",
        ),
    ],
)
def test_says_whom_it_strikes_and_when(more, what, line):
    assert list(choice_lines(resolved(rule("drop: 1%", more, what)), [1001])) == [line]


def test_a_plain_rule_needs_no_more_words():
    assert list(choice_lines(resolved(RULE), [1001])) == []


def test_bursts_are_told_by_their_length():
    found = resolved(rule("drop: {good_to_bad: 1%, bad_to_good: 20%}"))
    assert list(choice_lines(found, [1001])) == ["in bursts of 5.0 in the mean (two states)"]
