"""Every parameter of a case that differs from another case's is named, and nothing else."""

import pytest

from tests.unit.harness.scenario.explain.test_explain_arithmetic import GROUP, made
from tests.unit.harness.scenario.test_scenario_loader import GOOD
from windtunnel.harness.scenario.explain.parameters import _DERIVED, case_parameters
from windtunnel.harness.scenario.loader import parse_scenario
from windtunnel.harness.scenario.resolved.case import Payload
from windtunnel.harness.scenario.resolved.fault_case import FaultCase
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.scenario.resolved.resolution import resolve
from windtunnel.harness.scenario.resolved.traffic_case import StreamLimitsCase, TrafficCase
from windtunnel.harness.scenario.schema.merge import MergeCase
from windtunnel.harness.scenario.schema.pace import PaceCase

RULES = "events:\n  - {id: out, whom: {host: b}, when: {after: 1s}, act: {pause: 2s}}\n"


def case_of(text, subnet=64, seed=1):
    """Return a case whose addresses belong to this run only."""
    return resolve(
        parse_scenario(text, "made.yaml"), seed=seed, fidelity="netns",
        addresses={host: f"10.{subnet}.0.{3 + 16 * at}" for at, host in enumerate("abcd")},
        payload=Payload(path=f"/{subnet}/payload.bin", sha256="0" * 64, length_bytes=1),
    )  # fmt: skip


def differences(first, second):
    """Return the parameters that differ, by name, with the value of each case."""
    one, two = case_parameters(first), case_parameters(second)
    names = dict.fromkeys([*one, *two])
    found = {name: (one.get(name), two.get(name)) for name in names}
    return {name: values for name, values in found.items() if values[0] != values[1]}


@pytest.mark.parametrize("text", [GOOD, GROUP.replace("%s", "|fc=min")])
def test_the_same_scenario_at_other_addresses_has_the_same_parameters(text):
    assert differences(case_of(text), case_of(text, subnet=99)) == {}


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("delivered_once", "positions_covered", {
            "expect.delivered_once": ("yes", None), "expect.positions_covered": (None, "yes"),
        }),
        ("within: 5ms", "within: 9ms", {"expect.rcv_pos_reaches_end.within": ("5ms", "9ms")}),
        ("wall: 20s", "wall: 21s", {"wall": ("20s", "21s")}),
        ("name: loss/made", "name: loss/other", {"scenario": ("loss/made", "loss/other")}),
        ("about: Made up.", "about: Other.", {}),
        ("drop: 2%", "drop: 3%", {"faults.lose.share": ("2%", "3%")}),
        ("link: a->b}, what: {type: DATA}", "link: both}, what: {type: [SM, DATA]}", {
            "faults.lose.links": ("a->b", "a->b, b->a"),
            "faults.lose.frame_types": ("DATA", "SM, DATA"),
        }),
        ("for: 5ms", "for: 6ms", {"faults.late.hold": ("5ms", "6ms")}),
        ("bytes: 1MiB", "bytes: 2MiB", {"traffic.one.total": ("1MiB", "2MiB")}),
        ("term-length=64k", "term-length=64k|linger=1s", {
            "traffic.one.channel.linger": (None, "1s"),
        }),
        (':24325"\n    content', ':24325|rcv-wnd=64k"\n    content', {
            "traffic.one.receive.rcv-wnd": (None, "64k"),
        }),
        ("expect:", RULES + "expect:", {
            "events.out.host": (None, "b"), "events.out.process": (None, "driver"),
            "events.out.action": (None, "pause"), "events.out.lasts": (None, "2s"),
            "events.out.when": (None, "after 1s"),
        }),
        ("expect:", "timeouts: {image_liveness: 4s}\nexpect:", {
            "timeouts.image_liveness": (None, "4s"),
        }),
        ("backend: relay", "backend: relay, impairments: {b->a: {delay: 20ms, loss: 1%}}", {
            "impairments.b->a.delay": (None, "20ms"), "impairments.b->a.loss.model": (None, "iid"),
            "impairments.b->a.loss.shares": (None, "1%"),
        }),
    ],
)  # fmt: skip
def test_what_differs_is_named_with_both_values(old, new, found):
    assert GOOD.count(old) == 1
    assert differences(case_of(GOOD), case_of(GOOD.replace(old, new), subnet=99)) == found


def test_the_seed_and_the_channel_of_one_of_several_readers_are_named():
    text = GROUP.replace("%s", "|fc=min")
    own = '\n    receives: {c: "aeron:udp?endpoint=${self}:24325|control=${a}:24324|'
    own += 'control-mode=dynamic|rcv-wnd=64k"}\n    content'
    found = differences(case_of(text), case_of(text.replace("\n    content", own), seed=2))
    assert found == {"seed": ("1", "2"), "traffic.one.receives.c.rcv-wnd": (None, "64k")}


CHANGES = {
    "channels": (("a", "aeron:udp?mtu=1024"), ("c", "aeron:udp?mtu=64")),
    "receives": (("b", "aeron:udp?mtu=1024"), ("c", "aeron:udp?mtu=64")),
    "sources": (("b", "aeron:udp?mtu=1024"),),
    "destinations": ("aeron:udp?mtu=1024",),
    "publication": "concurrent",
    "channel": "aeron:udp?mtu=64",
    "receive": "aeron:udp?mtu=64",
    "pace": PaceCase(bytes_per_s=4096),
    "consume": PaceCase(rest_every_bytes=4096, rest_ns=1),
    "merges": MergeCase(after_bytes=4096, live="aeron:udp?endpoint=a:1", port=1),
    "rejoins": True,
    "limits": StreamLimitsCase(images_most=1),
}


@pytest.mark.parametrize("name", sorted(set(TrafficCase.model_fields) - {*_DERIVED, "id"}))
def test_a_change_of_any_field_of_a_stream_is_a_difference(name):
    case = case_of(made())
    (traffic,) = case.traffic
    value = getattr(traffic, name)
    new = CHANGES.get(name)
    if new is None:
        new = value + 64 if isinstance(value, int) else ("b", "c") if value == () else "c"
    changed = case.model_copy(update={"traffic": (traffic.model_copy(update={name: new}),)})
    assert differences(case, changed)


@pytest.mark.parametrize(
    ("model", "table"), [(FaultCase, "faults"), (ImpairmentCase, "impairments")]
)
def test_a_change_of_any_number_of_a_rule_or_impairment_is_a_difference(model, table):
    text = made(impairments="a->b: {delay: {mean: 20ms}}")
    rule = "  - {id: lose, where: {link: a->b}, what: {type: DATA}, act: {drop: 2%}}\n"
    case = case_of(text.replace("expect:", f"faults:\n{rule}expect:"))
    item = getattr(case, table)[0]
    numbers = [name for name in model.model_fields if type(getattr(item, name)) is int]
    assert len(numbers) > 7
    for name in numbers:
        changed = item.model_copy(update={name: getattr(item, name) + 1})
        other = case.model_copy(update={table: (changed,)})
        assert len(differences(case, other)) == 1
