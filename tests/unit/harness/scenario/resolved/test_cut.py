"""A publisher waits for a connection if a cut or a pause is as long as Aeron's timeout."""

import pytest

from tests.unit.harness.scenario.schema.test_host_event import PAUSE
from tests.unit.harness.scenario.test_scenario_loader import GOOD
from windtunnel.harness.scenario.explain.explain import explain
from windtunnel.harness.scenario.loader import parse_scenario
from windtunnel.harness.scenario.resolved.case import Payload
from windtunnel.harness.scenario.resolved.cut import may_disconnect, may_lack_receivers
from windtunnel.harness.scenario.resolved.resolution import resolve

RULE = "  - {id: lose, where: {link: a->b}, what: {type: DATA}, act: {drop: 2%}}\n"


def case_of(text):
    return resolve(
        parse_scenario(text, "made.yaml"), seed=1, fidelity="netns",
        addresses={"a": "10.64.0.3", "b": "10.64.0.19", "c": "10.64.0.35"},
        payload=Payload(path="payload.bin", sha256="0" * 64, length_bytes=1),
    )  # fmt: skip


def ruled(when, link="both", types="ANY", act="drop: always", more=""):
    rule = f"  - {{id: cut, where: {{link: {link}}}, what: {{type: {types}{more}}}, "
    rule += f"when: {{{when}}}, act: {{{act}}}}}\n"
    assert RULE in GOOD
    return GOOD.replace(RULE, rule).replace("wall: 20s", "wall: 60s")


def paused(process, host, lasts):
    event = (PAUSE % (process, "after: 1s", lasts)).replace("host: b", f"host: {host}")
    return GOOD.replace("expect:", f"events:\n  - {event}\nexpect:")


@pytest.mark.parametrize(
    ("text", "is_cut"),
    [
        (ruled("after: 2s, for: 5s"), True),
        (ruled("after: 2s, for: 4600ms"), True),
        (ruled("after: 2s, for: 4599ms"), False),
        (ruled("for: 5s", link="b->a", types="SM"), True),
        (ruled("for: 5s", link="a->b"), False),
        (ruled("for: 5s", link="b->a", types="NAK"), False),
        (ruled("for: 5s", link="b->a", types="SM", act="drop: 99%"), False),
        (ruled("for: 5s", link="b->a", types="SM", act="hold: {share: 100%, for: 5ms}"), False),
        (ruled("for: 5s", link="b->a", types="SM", more=", stream: 1001"), True),
        (ruled("for: 5s", link="b->a", types="SM", more=", order: {from: 1, to: 9}"), False),
        (ruled("until: {stream: 1001, position: 64KiB}", link="b->a", types="SM"), True),
        (ruled("after: 2s", link="b->a", types="SM"), False),
        (paused("driver", "b", "5s"), True),
        (paused("all", "a", "5s"), True),
        (paused("driver", "b", "4s"), False),
        (paused("subscriber", "b", "5s"), False),
        (GOOD, False),
    ],
)
def test_a_cut_as_long_as_the_connection_timeout_may_disconnect(text, is_cut):
    case = case_of(text)
    assert may_disconnect(case, case.traffic[0]) is is_cut
    assert ("the publisher waits until a receiver" in explain(case)) is is_cut


CONTROL = "control=${a}:24324|control-mode=dynamic"
GROUP = (
    GOOD.replace(RULE, "")
    .replace("hosts: [a, b]", "hosts: [a, b, c]")
    .replace("link: {between", "links: [{between")
    .replace("backend: relay}", "backend: relay}, {between: [a, c]}]")
    .replace("to: b", "to: [b, c]")
    .replace("endpoint=${b}:24325|", f"{CONTROL}|%s|")
    .replace("endpoint=${b}:24325", "endpoint=${self}:24325|" + CONTROL)
    .replace("    content", "    rejoins: true\n    content")
    .replace("delivered_once", "delivered_in_parts")
    .replace("wall: 20s", "wall: 60s")
)  # fmt: skip


@pytest.mark.parametrize(
    ("control", "act", "host", "lacks"),
    [
        ("fc=min,g:/2,t:2s", "pause: 2s", "b", True),
        ("fc=min,g:/2,t:2s", "pause: 1600ms", "c", True),
        ("fc=min,g:/2,t:2s", "pause: 1599ms", "c", False),
        ("fc=min,g:/2,t:2s", "pause: 2s", "a", True),
        ("fc=min,g:/1,t:2s", "pause: 2s", "b", False),
        ("fc=min,g:/1,t:2s", "pause: 2s", "a", True),
        ("fc=min,t:2s", "pause: 2s", "b", False),
        ("fc=max,g:/2", "pause: 8s", "b", False),
        ("fc=min,g:/2,t:9s", "kill: {restart_after: 1s}", "b", True),
        ("fc=min,g:/2,t:11s", "kill: {restart_after: 1s}", "b", False),
    ],
)
def test_a_group_lacks_receivers_while_too_many_are_silent(control, act, host, lacks):
    event = f"{{id: out, whom: {{host: {host}}}, when: {{after: 1s}}, act: {{{act}}}}}"
    text = GROUP.replace("%s", control).replace("expect:", f"events:\n  - {event}\nexpect:")
    case = case_of(text)
    assert may_lack_receivers(case, case.traffic[0]) is lacks
    assert may_disconnect(case, case.traffic[0]) is (lacks or act == "pause: 8s")


def test_receivers_that_are_silent_one_after_the_other_may_be_so_at_once():
    events = "events:\n"
    for host in ("b", "c"):
        events += (
            f"  - {{id: {host}, whom: {{host: {host}}}, when: {{after: 1s}}, act: {{pause: 3s}}}}\n"
        )
    text = GROUP.replace("%s", "fc=min,g:/1,t:2s").replace("expect:", f"{events}expect:")
    case = case_of(text)
    assert may_lack_receivers(case, case.traffic[0])
