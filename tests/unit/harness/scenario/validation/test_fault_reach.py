"""Rules that cannot fire are refused, and the nearest ones that can are accepted."""

import pytest

from tests.unit.harness.scenario.test_scenario_loader import changed, faults_of
from windtunnel.harness.scenario.loader import parse_scenario

LARGE = changed("bytes: 1MiB", "bytes: 8MiB")
RULE = "  - {id: lose, where: {link: a->b}, what: {type: DATA}, act: {drop: 2%}}\n"
SECOND = """\
  - id: two
    stream: 1002
    from: b
    to: a
    publication: exclusive
    channel: "aeron:udp?endpoint=${a}:24326|term-length=64k"
    receive: "aeron:udp?endpoint=${a}:24326"
    content: {bytes: 32MiB}
faults:
"""
UNRELIABLE = LARGE.replace('${b}:24325"\n    content', '${b}:24325|reliable=false"\n    content')
LATER = LARGE.replace("term-length=64k", "term-length=64k|init-term-id=0|term-id=160|term-offset=0")
KILL = """
events:
  - {id: crash, whom: {host: a, process: publisher}, when: {after: 1s},
     act: {kill: {restart_after: 1s}}}
"""
REJOINS = LARGE.replace("    content", "    rejoins: true\n    content").replace(
    "delivered_once", "delivered_in_parts"
)
GROUP = UNRELIABLE.replace("?endpoint=${b}:24325|term", "?control-mode=dynamic|control=${a}:1|term")


def ruled(rule: str, text: str = LARGE) -> str:
    assert RULE in text
    return text.replace(RULE, f"  - {{id: lose, {rule}, act: {{drop: always}}}}\n")


def data(more: str, types: str = "DATA", link: str = "a->b") -> str:
    return f"where: {{link: {link}}}, what: {{type: {types}, {more}}}"


PLAIN = "where: {link: a->b}, what: {type: DATA}"
FORGED = ruled(data("position: {from: 20MiB, length: 1B}", "NAK", "b->a")).replace(
    "hold: {share: 1%, for: 5ms}", "inject: {share: 1%, frames: [{type: NAK}]}"
)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            ruled(data("position: {from: 20MiB, length: 64KiB}")),
            "what.position.from: expected a position that the stream reaches: its log ends before",
        ),
        (ruled(data("position: {from: 12MiB, every: 1MiB}")), "what.position.from: expected a pos"),
        (ruled(data("position: {from: 12MiB, length: 1B}", "PAD")), "what.position.from: expected"),
        (ruled(data("position: {from: 12MiB, length: 1B}", "SM", "b->a")), "what.position.from: "),
        (
            ruled(data("position: {ranges: [{from: 12MiB, length: 1B}]}")),
            "what.position.ranges: expected a position that the stream reaches",
        ),
        (
            ruled(data("stream: 1001, position: {from: 20MiB, length: 1B}"), LARGE).replace(
                "faults:\n", SECOND
            ),
            "what.position.from: expected a position that the stream reaches",
        ),
        (
            ruled(data("position: {from: 1MiB, length: 9MiB}"), LATER),
            "what.position: expected a position that the stream reaches: its log starts at 10MiB, "
            "found a range that ends at 10MiB",
        ),
        (
            ruled(data("position: {at: term-end}"), LARGE).replace("=64k", "=64m"),
            "what.position.at: expected a stream that reaches the end of a term of 64MiB",
        ),
        (
            ruled(data("position: {at: term-start}"), LATER).replace(
                "length=64k|init-term-id=0|term-id=160|term-offset=0",
                "length=64m|init-term-id=0|term-id=0|term-offset=64",
            ),
            "what.position.at: expected a stream that reaches the end of a term of 64MiB",
        ),
        (
            ruled(f"{PLAIN}, when: {{reached: {{stream: 1001, position: 20MiB}}}}"),
            "when.reached.position: expected a position that the stream reaches",
        ),
        (ruled(f"{PLAIN}, when: {{after: 20s}}"), "when.after: expected less than budget.wall (20"),
        (
            ruled(f"{PLAIN}, attempt: {{from: 2}}", UNRELIABLE),
            "attempt: expected a reliable stream: an unreliable stream retransmits nothing",
        ),
        (ruled(data("session: 2")), "what.session: expected at most 1 (the stream's sessions)"),
        (ruled(data("session: 3"), REJOINS) + KILL, "what.session: expected at most 2"),
        (
            ruled(data("stream: 1002"), LARGE).replace("faults:\n", SECOND),
            "what.type: expected a frame type that stream 1002 sends over a->b, found DATA",
        ),
        (
            LARGE.replace("act: {drop: 2%}", "act: {truncate: {share: 1%, to: 1408B}}"),
            "act.truncate.to: expected less than the MTU of 1408B, found 1408B",
        ),
    ],
)
def test_a_rule_that_cannot_fire_is_refused(text: str, fault: str) -> None:
    errors = faults_of(text)
    assert [each for each in errors if f": faults[0].{fault}" in each], errors


@pytest.mark.parametrize(
    "text",
    [
        ruled(data("position: {from: 8MiB, length: 64KiB}")),
        ruled(data("position: {from: 8MiB, every: 1MiB}")),
        ruled(data("position: {ranges: [{from: 0B, length: 1B}, {from: 13MiB, length: 1B}]}")),
        ruled(data("position: {from: 20MiB, length: 1B}", link="both"), LARGE).replace(
            "faults:\n", SECOND
        ),
        ruled(data("position: {from: 10MiB, length: 64KiB}"), LATER),
        ruled(data("position: {from: 18MiB, length: 64KiB}"), LATER),
        ruled(data("position: {from: 1MiB, every: 9MiB}"), LATER),
        ruled(data("position: {at: term-end}")),
        ruled(data("position: {at: term-start}")).replace("=64k", "=64m"),
        ruled(data("position: {at: stream-end}")).replace("=64k", "=64m"),
        ruled(f"{PLAIN}, when: {{reached: {{stream: 1001, position: 8MiB}}}}"),
        ruled(f"{PLAIN}, when: {{until: {{stream: 1001, position: 20MiB}}}}"),
        ruled(f"{PLAIN}, when: {{after: 19s}}"),
        ruled(f"{PLAIN}, attempt: {{from: 2}}"),
        ruled(f"{PLAIN}, attempt: 1", UNRELIABLE),
        ruled(f"{PLAIN}, attempt: {{from: 2}}", UNRELIABLE).replace(
            "hold: {share: 1%, for: 5ms}", "inject: {share: 1%, frames: [{type: NAK}]}"
        ),
        FORGED,
        ruled(data("session: 1")),
        ruled(data("session: 2"), REJOINS) + KILL,
        ruled(data("stream: 1002", link="b->a"), LARGE).replace("faults:\n", SECOND),
        ruled(data("stream: 1002", "SM"), LARGE).replace("faults:\n", SECOND),
        LARGE.replace("act: {drop: 2%}", "act: {truncate: {share: 1%, to: 1407B}}"),
    ],
)
def test_a_rule_that_may_fire_is_accepted(text: str) -> None:
    assert parse_scenario(text, "made.yaml")


def test_one_fault_is_reported_for_an_unknown_stream() -> None:
    (error,) = faults_of(ruled(data("stream: 7"), LARGE))
    assert "expected one of the streams 1001, found 7" in error


def test_several_destinations_may_lie_on_one_host() -> None:
    """Then each position passes a link twice, although nothing is retransmitted."""
    rule = ruled(f"{PLAIN}, attempt: {{from: 2}}", GROUP)
    text = rule.replace('receive: "aeron:udp?', 'receive: "aeron:udp?control=${a}:1|')
    assert parse_scenario(text, "made.yaml")


def test_impairments_of_a_link_without_streams_are_refused() -> None:
    text = changed("hosts: [a, b]", "hosts: [a, b, c]").replace(
        "  link: {between: [a, b], backend: relay}\n",
        "  links:\n    - {between: [a, b]}\n"
        "    - {between: [a, c], impairments: {a->c: {loss: 1%}}}\n",
    )
    (error,) = faults_of(text)
    assert error.startswith(
        "made.yaml:10:25: network.links[1].impairments: there is neither a stream"
    )
    group = text.replace("endpoint=${b}:24325", "endpoint=224.20.30.39:24325|interface=${self}")
    assert parse_scenario(group, "made.yaml")
