"""The impairments of links while events are active, also several at a time."""

import pytest

from tests.unit.harness.scenario.applications.sample import SAMPLE
from windtunnel.harness.scenario.loader import parse_scenario
from windtunnel.harness.scenario.resolved.case import Payload
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, LossCase
from windtunnel.harness.scenario.resolved.link_event import (
    ALL_LOST,
    LinkStates,
    merged,
    possible_impairments,
)
from windtunnel.harness.scenario.resolved.resolution import resolve

LINKS = "links: [{between: [a, b], impairments: {both: {delay: 5ms}}}, {between: [b, c]}]"
EVENTS = """\
events:
  - {id: cut-a, whom: {host: a}, when: {after: 1s}, act: {partition: 2s}}
  - {id: cut-b, whom: {host: b}, when: {after: 1s}, act: {partition: 2s}}
  - {id: storm, whom: {link: "a->*"}, when: {after: 1s}, act: {impair: {loss: 10%, for: 2s}}}
  - {id: slow, whom: {host: b}, when: {after: 2s}, act: {impair: {delay: 50ms, for: 3s}}}
budget:"""
LOSS = LossCase(model="iid", shares_ppb=(10**8,))
MS = 1_000_000


class Links:
    """The current state of each direction, which events change by their ids."""

    def __init__(self, case):
        self._states, self._events = LinkStates(case), {each.id: each for each in case.events}
        self.directions = {}

    def begin(self, name):
        self._keep(self._states.begin(self._events[name]))

    def end(self, name):
        self._keep(self._states.end(self._events[name]))

    def _keep(self, impairments):
        self.directions |= {each.link: each for each in impairments}

    @property
    def lost(self):
        return sorted(name for name, each in self.directions.items() if each.loss == ALL_LOST)


@pytest.fixture
def case():
    text = SAMPLE.replace("hosts: [a, b]", "hosts: [a, b, c]").replace("budget:", EVENTS)
    text = text.replace("link: {between: [a, b], impairments: {both: {delay: 5ms}}}", LINKS)
    return resolve(
        parse_scenario(text, "made.yaml"),
        seed=1,
        fidelity="netns",
        addresses={"a": "10.0.0.3", "b": "10.0.1.3", "c": "10.0.2.3"},
        payload=Payload(path="p", sha256="", length_bytes=1),
    )


@pytest.fixture
def links(case):
    return Links(case)


def test_a_host_is_cut_off_from_all_others_and_connected_as_before(links):
    links.begin("cut-b")
    assert links.lost == ["a->b", "b->a", "b->c", "c->b"]
    links.end("cut-b")
    assert links.lost == []
    assert links.directions["a->b"].delay_ns == 5 * MS
    assert links.directions["b->c"].delay_ns == 0


def test_a_link_is_up_again_when_neither_of_its_hosts_is_cut_off(links):
    links.begin("cut-a")
    links.begin("cut-b")
    links.end("cut-b")
    assert links.lost == ["a->b", "b->a"]
    links.end("cut-a")
    assert links.lost == []


def test_an_event_sets_its_keys_for_a_while_and_the_others_remain(links):
    links.begin("storm")
    assert links.directions == {"a->b": ImpairmentCase(link="a->b", loss=LOSS, delay_ns=5 * MS)}
    links.end("storm")
    assert links.directions == {"a->b": ImpairmentCase(link="a->b", delay_ns=5 * MS)}


def test_overlapping_events_are_all_applied_and_end_independently(links):
    links.begin("storm")
    links.begin("slow")
    both = ImpairmentCase(link="a->b", loss=LOSS, delay_ns=50 * MS)
    assert links.directions["a->b"] == both
    assert links.directions["c->b"] == ImpairmentCase(link="c->b", delay_ns=50 * MS)
    links.end("storm")
    assert links.directions["a->b"] == ImpairmentCase(link="a->b", delay_ns=50 * MS)
    links.end("slow")
    assert links.directions["a->b"] == ImpairmentCase(link="a->b", delay_ns=5 * MS)


def test_a_partition_has_precedence_and_ends_with_what_is_still_active(links):
    links.begin("cut-a")
    links.begin("storm")
    assert links.directions["a->b"] == ImpairmentCase(link="a->b", loss=ALL_LOST)
    links.end("cut-a")
    assert links.directions["a->b"] == ImpairmentCase(link="a->b", loss=LOSS, delay_ns=5 * MS)


def test_the_value_of_a_key_is_replaced_as_a_whole():
    own = ImpairmentCase(
        link="a->b",
        delay_ns=9,
        jitter_ns=4,
        distribution="normal",
        rate_bits_per_s=7,
        reorder_gap=3,
    )
    added = ImpairmentCase(link="a->b", delay_ns=20, queue_packets=5)
    assert merged(own, added) == ImpairmentCase(
        link="a->b", delay_ns=20, rate_bits_per_s=7, queue_packets=5, reorder_gap=3
    )


def test_a_direction_has_its_own_impairments_or_those_of_one_of_its_events(case):
    found = [(each.loss, each.delay_ns // MS) for each in possible_impairments(case, "a->b")]
    assert found == [(None, 5), (LOSS, 5), (None, 50)]
    assert [each.delay_ns // MS for each in possible_impairments(case, "c->b")] == [0, 50]
