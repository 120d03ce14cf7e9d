"""Hosts that are cut off, also several at a time."""

import pytest

from tests.unit.harness.scenario.applications.sample import SAMPLE
from windtunnel.harness.orchestrate.run.partitions import ALL_LOST, Partitions
from windtunnel.harness.scenario.loader import parse_scenario
from windtunnel.harness.scenario.resolved.case import Payload, resolve

LINKS = "links: [{between: [a, b], impairments: {both: {delay: 5ms}}}, {between: [b, c]}]"


class Requester:
    """A requester that keeps the newest state of each direction."""

    def __init__(self):
        self.directions = {}

    def request(self, impairments):
        self.directions |= {each.link: each for each in impairments}
        return 1

    @property
    def lost(self):
        return sorted(name for name, each in self.directions.items() if each.loss == ALL_LOST)


@pytest.fixture
def requester():
    return Requester()


@pytest.fixture
def partitions(requester):
    text = SAMPLE.replace("hosts: [a, b]", "hosts: [a, b, c]")
    text = text.replace("link: {between: [a, b], impairments: {both: {delay: 5ms}}}", LINKS)
    case = resolve(
        parse_scenario(text, "made.yaml"),
        seed=1,
        fidelity="netns",
        addresses={"a": "10.0.0.3", "b": "10.0.1.3", "c": "10.0.2.3"},
        payload=Payload(path="p", sha256="", length_bytes=1),
    )
    return Partitions(case, requester)


def test_a_host_is_cut_off_from_all_others_and_connected_as_before(partitions, requester):
    partitions.cut("b")
    assert requester.lost == ["a->b", "b->a", "b->c", "c->b"]
    partitions.reconnect("b")
    assert requester.lost == []
    assert requester.directions["a->b"].delay_ns == 5_000_000
    assert requester.directions["b->c"].delay_ns == 0


def test_a_link_is_up_again_when_neither_of_its_hosts_is_cut_off(partitions, requester):
    partitions.cut("a")
    partitions.cut("b")
    partitions.reconnect("b")
    assert requester.lost == ["a->b", "b->a"]
    partitions.reconnect("a")
    assert requester.lost == []
