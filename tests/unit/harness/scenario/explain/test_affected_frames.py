"""How many DATA frames a fault rule affects, as `explain` estimates it."""

from tests.unit.harness.scenario.explain.test_explain_arithmetic import (
    DROP,
    case_of,
    lines_of,
    made,
)


def rules(*lines):
    return made().replace("expect:", "\n".join(["faults:", *lines, "expect:"]))


COPY = "  - {id: two, where: {link: a->b}, what: {type: DATA}, act: {duplicate: 5%}}"


def test_a_rule_affects_the_frames_that_no_earlier_rule_matched():
    """Of n frames, n / 0.8 are sent, of which n reach the second rule, or the first one."""
    count = len(range(0, case_of(made()).traffic[0].total_bytes, 1000))
    for lines, expected in (
        ((DROP, COPY), [count / 0.8 * 0.2, count * 0.05]),
        ((COPY, DROP), [count / 0.8 * 0.05, count / 0.8 * 0.95 * 0.2]),
    ):
        found = [line for line in lines_of(rules(*lines)) if line.startswith("about ")]
        assert found == [f"about {each:.0f} DATA frames" for each in expected]


def test_a_rule_for_first_attempts_does_not_count_retransmissions():
    count = len(range(0, case_of(made()).traffic[0].total_bytes, 1000))
    text = rules(DROP.replace("act:", "attempt: 1, act:"))
    (line,) = [line for line in lines_of(text) if line.startswith("about ")]
    assert line == f"about {count * 0.2:.0f} DATA frames"


def test_a_rule_for_a_place_does_not_count_as_one_for_all_frames():
    """Retransmissions of such frames are not counted."""
    count = len(range(0, case_of(made()).traffic[0].total_bytes, 1000))
    gap = "what: {type: DATA, position: {from: 64KiB, length: 4KiB}}, act: {drop: always}"
    text = rules(f"  - {{id: gap, where: {{link: a->b}}, {gap}}}", DROP)
    (line,) = [line for line in lines_of(text) if line.startswith("about ")]
    assert line == f"about {count / 0.8 * 0.2:.0f} DATA frames"


def test_frames_that_are_lost_at_their_first_attempt_are_retransmitted():
    """Each of them once, and more often only if the other rule drops them again."""
    count = len(range(0, case_of(made()).traffic[0].total_bytes, 1000))
    first = DROP.replace("act:", "attempt: 1, act:").replace("id: one", "id: first")
    text = rules(first, DROP.replace("20%", "50%"))
    found = [line for line in lines_of(text) if line.startswith("about ")]
    again = (0.2 + 0.8 * 0.5) / 0.5
    assert found == [
        f"about {count * 0.2:.0f} DATA frames",
        f"about {count * (0.8 + again) * 0.5:.0f} DATA frames",
    ]
