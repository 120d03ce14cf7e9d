"""Observed streams in a scenario file, and in a resolved case."""

import pytest
import yaml

from tests.unit.harness.scenario.applications.sample import SAMPLE, resolved
from tests.unit.harness.scenario.test_json_schema import accepts
from tests.unit.harness.scenario.test_scenario_loader import GOOD, faults_of
from windtunnel.harness.scenario.explain.explain import explain
from windtunnel.harness.scenario.loader import parse_scenario
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.traffic_case import StreamLimitsCase

OBSERVE = """\
observe:
  - {id: orders, stream: 7, from: a, to: b, channel: "aeron:udp?endpoint=${b}:24325|mtu=1408"}
  - id: answers
    stream: 7
    from: b
    to: a
    channel: "aeron:udp?endpoint=${a}:24326|term-length=64k"
budget:"""
TEXT = SAMPLE.replace("budget:", OBSERVE)


def test_ports_are_those_of_the_channels():
    case = resolved(TEXT)
    assert case.ports == (24325, 24326)
    assert case.traffic == ()
    assert [each.channel for each in case.observed] == [
        "aeron:udp?endpoint=10.0.1.3:24325|mtu=1408",
        "aeron:udp?endpoint=10.0.0.3:24326|term-length=64k",
    ]
    assert [each.term_length for each in case.observed][1] == 65536


def test_is_read_as_it_was_written(tmp_path):
    resolved(TEXT).write(tmp_path / "case.json")
    assert Case.read(tmp_path / "case.json") == resolved(TEXT)


def test_all_streams_may_be_observed_without_names(tmp_path):
    found = resolved(SAMPLE.replace("budget:", "observe: all\nbudget:"))
    assert (found.observes_all, found.observed, found.aeron_ports) == (True, (), ())
    assert accepts(yaml.safe_load(SAMPLE.replace(" on:", " 'on':")) | {"observe": "all"})
    found.write(tmp_path / "case.json")
    assert Case.read(tmp_path / "case.json") == found
    assert "all streams that the captures show are observed" in explain(found)
    assert found != resolved(SAMPLE)
    both = TEXT.replace("budget:", "observe_all: true\nbudget:")
    assert len(resolved(both).observed) == 2
    without = GOOD.replace("faults:\n", "observe: all\nfaults:\n")
    assert any("observe_all: expected `applications`" in each for each in faults_of(without))


def test_explain_names_them():
    assert "  orders: stream 7 from a to b, aeron:udp?endpoint=10.0.1.3:24325|mtu=1408" in explain(
        resolved(TEXT)
    )


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("id: answers", "id: orders", "observe[1].id: 'orders' occurs twice"),
        (
            "from: b\n    to: a\n",
            "from: a\n    to: b\n",
            "stream 7 from a to b occurs tw",
        ),
        ("from: a, to: b, c", "from: c, to: b, c", "observe[0].from: expected a host of the netwo"),
        ("from: a, to: b, c", "from: a, to: a, c", "observe[0].to: there is no link between a and"),
        ("endpoint=${b}:24325|mtu", "endpoint=${c}:24325|mtu", "observe[0].channel: expected a ho"),
        ("aeron:udp?endpoint=${b}:24325|mtu=1408", "aeron:ipc", "observe[0].channel: "),
        ("${b}:24325|mtu", "${b}:0|mtu", "observe[0].channel: "),
        ("|mtu=1408", "|mtv=1408", "observe[0].channel: "),
        ("id: orders,", "", "observe[0].id: this key is missing"),
        (
            "from: a, to: b, c",
            "from: b, to: a, c",
            "observe[0].channel: the endpoint is on host b, which therefore receives the stream: "
            "expected `to: b`, found a",
        ),
        ("endpoint=${b}:24325|mtu", "endpoint=${self}:24325|mtu", "the endpoint is on host a, whi"),
        (
            "endpoint=${b}:24325|mtu",
            "control=${b}:24325|control-mode=dynamic|mtu",
            "the control address is on host b, which therefore sends the stream: expected "
            "`from: b`, found a",
        ),
    ],
)
def test_locates_an_error(old, new, fault):
    assert TEXT.count(old) == 1
    assert any(fault in each for each in faults_of(TEXT.replace(old, new)))


@pytest.mark.parametrize(
    "channel",
    [
        "control=${a}:24325|control-mode=dynamic",
        "control=${self}:24325|control-mode=dynamic",
        "endpoint=10.0.0.9:24325",
        "endpoint=224.20.30.39:24325|interface=${self}",
    ],
)
def test_a_channel_may_name_its_own_host_or_none(channel):
    text = TEXT.replace("endpoint=${b}:24325|mtu=1408", channel)
    assert channel in text
    assert parse_scenario(text, "made.yaml").observe[0].to_host == "b"


def test_a_stream_of_traffic_is_not_observed():
    observed = '{id: one, stream: 1001, from: a, to: b, channel: "aeron:udp?endpoint=${b}:1"}'
    errors = faults_of(GOOD.replace("faults:\n", f"observe: [{observed}]\nfaults:\n"))
    assert any("observe: expected `applications`" in each for each in errors)
    assert any("observe[0].stream: stream 1001 is in `traffic`" in each for each in errors)
    assert any("observe[0].id: 'one' occurs twice" in each for each in errors)


LIMITS = (
    "goodput_at_least: 200KiB/s, silence_at_most: 500ms, recovers_within: 2s, "
    "back_pressure_at_most: 100ms, images_at_most: 1"
)


def test_limits_are_in_the_case_and_explained(tmp_path):
    text = TEXT.replace('|mtu=1408"}', f'|mtu=1408", expect: {{{LIMITS}}}}}')
    assert text != TEXT
    case = resolved(text)
    assert case.observed[0].limits == StreamLimitsCase(
        least_bytes_per_s=200 << 10,
        silence_most_ns=500_000_000,
        recovery_most_ns=2_000_000_000,
        back_pressure_most_ns=100_000_000,
        images_most=1,
    )
    case.write(tmp_path / "case.json")
    assert Case.read(tmp_path / "case.json") == case
    explained = explain(case)
    for line in (
        "goodput is at least 200KiB/s",
        "new data is usable every 500ms",
        "new data is usable within 2s of an interruption",
        "its publication is at its limit for at most 100ms",
        "host b has at most 1 image",
    ):
        assert f"    {line}\n" in explained
    assert resolved(TEXT).observed[0].limits is None
