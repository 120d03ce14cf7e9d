"""The paths of trials' streams: each kind is chosen, and leads from one host to the other."""

import random
from collections import Counter

from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.simulator.swarm.stream_path import choose_path

NEAR, FAR, PORT = "10.0.0.1", "10.0.0.2", 24_325
KINDS = {"unicast", "multicast", "dynamic", "manual", "collected", "doubled"}


def chosen(count=2_000):
    return [choose_path(random.Random(seed), NEAR, FAR, PORT) for seed in range(count)]


def test_each_kind_is_chosen_and_most_streams_are_plain():
    counts = Counter(each.name for each in chosen())
    assert set(counts) == KINDS
    assert counts["unicast"] > 900
    assert min(counts.values()) > 80


def test_a_group_may_have_each_flow_control_and_a_plain_stream_none():
    chosen_paths = {(each.name, each.publish.partition("fc=")[2][:3]) for each in chosen()}
    sends_to_many = {"multicast", "dynamic", "manual", "doubled"}
    assert {(name, flow) for name, flow in chosen_paths if name in sends_to_many} == {
        (name, flow) for name in sends_to_many for flow in ("", "min", "max")
    }
    assert {(name, flow) for name, flow in chosen_paths if name not in sends_to_many} == {
        (name, "") for name in KINDS - sends_to_many
    }


def test_each_end_receives_on_the_addresses_to_which_the_other_sends():
    for way in chosen(200):
        received = {way.receive.split("?")[1].split("|")[0], *(each[10:] for each in way.sources)}
        sent = {way.publish.split("?")[1].split("|")[0], *(each[10:] for each in way.destinations)}
        if way.name == "dynamic":
            assert f"|{sent.pop()}" in way.receive
        else:
            assert any(each.startswith("endpoint=") for each in sent & received)


def test_the_ports_are_the_streams_own():
    for way in chosen(200):
        for text in (way.publish, way.receive, *way.destinations, *way.sources):
            assert set(parse_channel(text).ports) <= {PORT, PORT + 100}
