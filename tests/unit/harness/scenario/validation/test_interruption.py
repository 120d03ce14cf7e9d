"""Cuts that close an image, and windows that are too large, are refused before a run starts."""

import pytest

from tests.unit.harness.scenario.test_scenario_loader import GOOD, changed, faults_of
from windtunnel.harness.scenario.loader import parse_scenario

RULE = "  - {id: lose, where: {link: a->b}, what: {type: DATA}, act: {drop: 2%}}\n"
LONG = "wall: 60s"
REJOINS = GOOD.replace("    content", "    rejoins: true\n    content").replace("wall: 20s", LONG)
PARTS = REJOINS.replace("delivered_once", "delivered_in_parts")
UNRELIABLE = PARTS.replace('${b}:24325"\n', '${b}:24325|reliable=false"\n', 1)
TIMEOUTS = "timeouts: {client_liveness: 3s, driver: 3s, image_liveness: 3s}"


def cut(span: str, text: str = GOOD, types: str = "ANY", act: str = "drop: always") -> str:
    rule = f"  - {{id: cut, where: {{link: both}}, what: {{type: {types}}}, "
    rule += f"when: {{after: 1s, {span}}}, act: {{{act}}}}}\n"
    assert RULE in text
    return text.replace(RULE, rule).replace("wall: 20s", LONG)


def crash(restart_after: str, publication: str, text: str = PARTS) -> str:
    """Return a scenario whose publisher is killed and restarted."""
    event = "{id: crash, whom: {host: a, process: publisher}, when: {after: 1s}, act: {kill: "
    event += f"{{restart_after: {restart_after}}}}}}}"
    text = text.replace("publication: exclusive", f"publication: {publication}")
    return text.replace("expect:", f"events:\n  - {event}\nexpect:")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (cut("for: 10s"), "faults[0].when.for: needs `rejoins: true` in the traffic 'one': this"),
        (
            cut("for: 2s").replace("expect:", "timeouts: {image_liveness: 2s}\nexpect:"),
            "images are closed after 2s",
        ),
        (
            cut("for: 10s", REJOINS),
            "expect[0]: not guaranteed for 'one': rule 'cut' closes an image",
        ),
        (
            REJOINS.replace(
                "expect:",
                "events:\n  - {id: stop, whom: {host: b}, when: {after: 1s}, act: {pause: 12s}}\n"
                "expect:",
            ),
            "expect[0]: not guaranteed for 'one': event 'stop' closes an image",
        ),
        (UNRELIABLE, "expect[0]: not guaranteed for 'one': gaps of an unreliable stream"),
        (
            crash("1s", "exclusive", UNRELIABLE.replace("in_parts", "intact")),
            "events[0].act.kill: expected reliable streams: with gaps in 'one', the judge cannot",
        ),
        (crash("1s", "concurrent"), "restart_after: expected more than 11s: until then the"),
        (crash("11s", "concurrent"), "`publication: exclusive`, or a later restart"),
        (
            crash("4s", "concurrent").replace("expect:", f"{TIMEOUTS}\nexpect:"),
            "expected more than 4s: until then the concurrent publication of 'one' exists",
        ),
    ],
)
def test_an_interruption_that_closes_an_image_is_refused(text, fault):
    assert any(fault in each for each in faults_of(text)), faults_of(text)


@pytest.mark.parametrize(
    "text",
    [
        cut("for: 9999ms"),
        cut("for: 10s", types="SM"),
        cut("for: 10s", types="[DATA, PAD]"),
        cut("for: 10s", act="drop: 99%"),
        cut("for: 10s, until: {stream: 1001, position: 64KiB}"),
        cut("for: 10s", PARTS),
        cut("for: 9s", REJOINS),
        UNRELIABLE.replace("delivered_in_parts", "delivered_intact"),
        crash("1s", "exclusive"),
        crash("12s", "concurrent"),
        crash("5s", "concurrent").replace("expect:", f"{TIMEOUTS}\nexpect:"),
    ],
)
def test_an_interruption_that_an_image_survives_is_accepted(text):
    parse_scenario(text, "made.yaml")


@pytest.mark.parametrize(
    ("parameters", "fault"),
    [
        ("rcv-wnd=64m", "rcv-wnd=64m: expected at most 131072 bytes, the receive buffer: add"),
        ("rcv-wnd=131073", "so-rcvbuf=131073"),
        ("rcv-wnd=3m|so-rcvbuf=2m", "rcv-wnd=3m: expected at most 2097152 bytes"),
        ("so-rcvbuf=64k", "rcv-wnd=131072 (the default): expected at most 65536 bytes"),
        ("so-rcvbuf=64k|rcv-wnd=64k", ""),
        ("rcv-wnd=128k", ""),
        ("rcv-wnd=2m|so-rcvbuf=2m", ""),
    ],
)
def test_a_window_has_to_fit_into_the_receive_buffer(parameters, fault):
    text = changed(':24325"\n    content', f':24325|{parameters}"\n    content')
    if not fault:
        parse_scenario(text, "made.yaml")
        return
    (found,) = faults_of(text)
    assert found.startswith("made.yaml:16:5: traffic[0].receive: ")
    assert fault in found
