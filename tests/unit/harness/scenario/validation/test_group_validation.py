"""Groups that are too small for their flow control are refused before a run starts."""

import pytest

from tests.unit.harness.scenario.test_scenario_loader import faults_of
from windtunnel.harness.scenario.loader import parse_scenario

CHANNEL = "aeron:udp?control-mode=dynamic|control=${a}:24324|term-length=64k|%s"
RECEIVE = "aeron:udp?endpoint=${self}:24325|control=${a}:24324|control-mode=dynamic"


def group(control, *rules, receives=""):
    lines = "".join(
        f"  - {{id: rule{index}, where: {{link: {link}}}, what: {{type: {types}}}, "
        f"{when}act: {{{act}}}}}\n"
        for index, (link, types, when, act) in enumerate(rules)
    )
    return f"""\
schema: windtunnel/1
name: made/group
about: Made up.
seeds: {{root: 1}}
fidelity: [sim]
network:
  hosts: [a, b, c, d]
  links: [{{between: [a, b]}}, {{between: [a, c]}}, {{between: [a, d]}}]
traffic:
  - id: one
    stream: 1001
    from: a
    to: [b, c, d]
    publication: exclusive
    channel: "{CHANNEL % control}"
    receive: "{RECEIVE}"
{receives}    content: {{bytes: 1MiB}}
{"faults:" if rules else ""}
{lines}expect:
  - delivered_unbroken
budget: {{wall: 60s}}
"""


TAGGED = f'    receives: {{c: "{RECEIVE}|gtag=7"}}\n'
LATER = "when: {after: 1s}, "
DROP = "drop: always"
HOLD = "hold: {share: 9%, for: 5ms}"
CUT = ("[a->d, d->a]", "ANY", LATER, DROP)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            group("fc=min,g:/4"),
            "traffic[0].channel: fc=min,g:/4: expected at least 4 receivers, found 3 (b, c, d): "
            "the publication would never be connected",
        ),
        (
            group("fc=tagged,g:7/2", receives=TAGGED),
            "fc=tagged,g:7/2: expected at least 2 receivers with gtag=7, found 1 (c): ",
        ),
        (group("fc=tagged,g:7/1"), "expected at least 1 receivers with gtag=7, found none: "),
        (
            group("fc=min,g:/3", CUT),
            "faults[0]: cuts off d for good, and fc=min,g:/3 of the traffic 'one' needs 3 "
            "receivers: with 2 left, the publication is disconnected and the stream never ends: "
            "end the rule with `for`, or use a smaller group",
        ),
        (group("fc=min,g:/3", ("d->a", "SM", "", DROP)), "faults[0]: cuts off d for good"),
        (
            group("fc=min,g:/3", ("a->d", "[DATA, PAD, HEARTBEAT, SETUP]", LATER, DROP)),
            "faults[0]: cuts off d for good",
        ),
        (
            group("fc=min,g:/2", CUT, ("b->a", "SM", LATER, DROP)),
            "faults[1]: cuts off b, d for good",
        ),
        (group("fc=tagged,g:7/1", ("c->a", "SM", LATER, DROP), receives=TAGGED), "cuts off c for"),
    ],
)
def test_a_group_that_is_too_small_is_refused(text, fault):
    assert any(fault in each for each in faults_of(text)), faults_of(text)


@pytest.mark.parametrize(
    "text",
    [
        group("fc=min,g:/3"),
        group("fc=max,g:/9"),
        group("fc=tagged,g:7/1", receives=TAGGED),
        group("fc=min,g:/2", CUT),
        group("fc=min", CUT),
        group("fc=tagged,g:7/1", CUT, receives=TAGGED),
        group("fc=min,g:/3", ("d->a", "SM", "when: {after: 1s, for: 7s}, ", DROP)),
        group("fc=min,g:/3", ("d->a", "SM", LATER, "drop: 99%")),
        group("fc=min,g:/3", ("d->a", "NAK", LATER, DROP)),
        group("fc=min,g:/3", ("a->d", "[DATA, PAD, HEARTBEAT]", LATER, DROP)),
        # The first rule matches some of the frames, which pass it late.
        group("fc=min,g:/3", ("d->a", "SM", "", HOLD), ("d->a", "SM", "", DROP)),
    ],
)  # fmt: skip
def test_a_group_that_is_large_enough_is_accepted(text):
    parse_scenario(text, "made.yaml")


def test_the_minimum_of_a_stream_to_one_destination_has_no_effect():
    text = group("fc=min,g:/1").replace(CHANNEL % "fc=min,g:/1", "aeron:udp?endpoint=${b}:24325|%s")
    text = text.replace("%s", "fc=min,g:/2|term-length=64k").replace("to: [b, c, d]", "to: b")
    text = text.replace(RECEIVE, "aeron:udp?endpoint=${b}:24325")
    parse_scenario(text, "made.yaml")
