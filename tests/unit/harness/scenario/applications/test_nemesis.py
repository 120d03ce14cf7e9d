"""The events that a seed draws, and how an error in a nemesis is located."""

import itertools
from collections import Counter

import pytest

from tests.unit.harness.scenario.applications.sample import SAMPLE, changed, resolved
from tests.unit.harness.scenario.test_scenario_loader import GOOD, faults_of
from windtunnel.harness.scenario.applications.nemesis import ACTS, MS
from windtunnel.harness.scenario.explain.explain import explain
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.schema.host_event import event_line

S = 10**9


def text_of(nemesis: str) -> str:
    return changed("budget: {wall: 20s}", f"nemesis: {nemesis}\nbudget: {{wall: 10min}}")


FULL = text_of(
    "{events: 32, drivers: [b], impair: [{loss: 10%}, {rate: 1Mbit/s}], "
    "every: {from: 1s, to: 2s}, lasts: {from: 1s, to: 4s}}"
)


def test_equal_seeds_draw_equal_events_and_other_seeds_others():
    drawn = {seed: resolved(FULL, seed).events for seed in range(20)}
    assert drawn[3] == resolved(FULL, 3).events
    assert len(set(drawn.values())) == 20


def test_events_follow_each_other_within_their_spans():
    for seed in range(20):
        events = resolved(FULL, seed).events
        assert len(events) == 32
        assert [each.id for each in events[:2]] == ["nemesis-1", "nemesis-2"]
        assert S <= events[0].at <= 2 * S
        for before, after in itertools.pairwise(events):
            assert S <= after.at - (before.at + before.lasts_ns) <= 2 * S
        assert all(S <= each.lasts_ns <= 4 * S for each in events)


def test_times_are_whole_milliseconds_if_their_span_has_one():
    for seed in range(20):
        for each in resolved(FULL, seed).events:
            assert (each.at % MS, each.lasts_ns % MS) == (0, 0)
    short = text_of("{events: 3, every: {from: 7us, to: 9us}, lasts: {from: 1ms, to: 1ms}}")
    first = resolved(short, 1).events[0]
    assert 7_000 <= first.at <= 9_000


def test_every_act_and_every_target_is_drawn_about_as_often():
    drawn = [each for seed in range(50) for each in resolved(FULL, seed).events]
    acts = Counter(each.action for each in drawn)
    assert set(acts) == set(ACTS)
    assert min(acts.values()) > 0.22 * len(drawn)
    for act in ("partition", "impair"):
        hosts = Counter(each.host for each in drawn if each.action == act)
        assert min(hosts["a"], hosts["b"]) > 0.4 * acts[act]
    hit = Counter((each.process, each.application, each.host) for each in drawn if each.roles)
    assert set(hit) == {
        ("application", "service", "b"),
        ("application", "client", "a"),
        ("driver", "", "b"),
    }
    assert min(hit.values()) > 0.28 * hit.total()


def test_every_kind_of_impairments_is_drawn_about_as_often():
    drawn = [each for seed in range(50) for each in resolved(FULL, seed).events]
    found: Counter[str] = Counter()
    for event in drawn:
        links = [each.link for each in event.impairments]
        assert links == (["a->b", "b->a"] if event.action == "impair" else [])
        for each in event.impairments[:1]:
            assert (each.loss is None) != (each.rate_bits_per_s == 0)
            found["rate" if each.rate_bits_per_s else "loss"] += 1
    assert min(found["rate"], found["loss"]) > 0.4 * found.total() > 0


def test_impairments_of_a_host_are_those_of_its_links_only():
    text = text_of("{acts: [impair], impair: {delay: 30ms}, hosts: [b]}")
    text = text.replace("hosts: [a, b]\n", "hosts: [a, b, c]\n").replace(
        "link: {between: [a, b], impairments: {both: {delay: 5ms}}}",
        "links: [{between: [a, b]}, {between: [a, c]}]",
    )
    addresses = {"a": "10.0.0.3", "b": "10.0.1.3", "c": "10.0.2.3"}
    for event in resolved(text, addresses=addresses).events:
        assert (event.action, event.host) == ("impair", "b")
        assert {each.link for each in event.impairments} == {"a->b", "b->a"}
        assert {each.delay_ns for each in event.impairments} == {30_000_000}


def test_without_impairments_the_act_is_not_drawn():
    events = [each for seed in range(20) for each in resolved(text_of("{events: 9}"), seed).events]
    assert {each.action for each in events} == {"pause", "kill", "partition"}


def test_names_limit_what_is_drawn():
    case = resolved(text_of("{acts: [kill, partition], applications: [client], hosts: [b]}"))
    found = {(each.action, each.host, each.application) for each in case.events}
    assert found <= {("kill", "a", "client"), ("partition", "b", "")}
    assert all(each.drawn for each in case.events)


def test_a_case_with_possible_partitions_has_impairments_of_all_directions(tmp_path):
    without = changed("impairments: {both: {delay: 5ms}}", "impairments: {a->b: {delay: 5ms}}")
    text = without.replace("budget: {wall", "nemesis: {acts: [partition]}\nbudget: {wall")
    case = resolved(text.replace("20s", "60s"))
    assert [each.link for each in case.impairments] == ["a->b", "b->a"]
    assert (case.changes_links, case.live) == (True, False)
    case.write(tmp_path / "case.json")
    assert Case.read(tmp_path / "case.json") == case
    assert not resolved(without).changes_links


def test_events_are_described():
    case = resolved(FULL)
    lines = [event_line(each, has_traffic=False, links="x") for each in case.events]
    assert all("after all applications were ready" in each for each in lines)
    assert any("cut off for" in each for each in lines)
    assert any(": x impaired for" in each for each in lines)
    explained = explain(case)
    assert "a->b, b->a impaired for" in explained


CUT = "events: [{id: cut, whom: {host: b}, when: {after: 1s}, act: {partition: 2s}}]\n"


def test_a_partition_can_be_written():
    (event,) = resolved(changed("budget:", f"{CUT}budget:")).events
    assert (event.action, event.host, event.lasts_ns, event.roles) == ("partition", "b", 2 * S, ())
    assert not event.drawn


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (text_of("{applications: [servic]}"), "nemesis.applications[0]: expected an application"),
        (text_of("{drivers: [c]}"), "nemesis.drivers[0]: expected a host of the network, found"),
        (text_of("{hosts: [a, c]}"), "nemesis.hosts[1]: expected a host of the network, found 'c'"),
        (text_of("{applications: []}"), "nemesis.acts[0]: nothing to pause: name an application"),
        (text_of("{events: 33}"), "nemesis.events: expected at most"),
        (text_of("{acts: [explode]}"), "nemesis.acts[0]: expected '"),
        (text_of("{acts: []}"), "nemesis.acts: expected at least 1 items"),
        (text_of("{every: {from: 2s, to: 1s}}"), "expected `from` to be at most `to`"),
        (text_of("{lasts: {from: 1s, to: 61s}}"), "nemesis.lasts.to: expected at most"),
        (text_of("{events: 32, every: {from: 1s, to: 20s}}"),
         "nemesis: 32 events may take 704s, as long as budget.wall (10min): draw fewer"),
        (text_of("{}").replace("link: {between: [a, b]", "link: {between: [a, b], backend: netem"),
         "nemesis.acts: only the relay changes links during a run: write `backend: relay`"),
        (text_of("{acts: [impair]}"), "nemesis.acts[0]: `impair` needs the key `impair`"),
        (text_of("{acts: [kill], impair: {loss: 1%}}"), "nemesis.impair: the acts do not include"),
        (text_of("{impair: [{loss: 1%}, {}]}"), "nemesis.impair[1]: expected at least one of loss"),
        (text_of("{impair: {queue: 100}}"), "nemesis.impair[0].queue: needs a rate"),
        (text_of("{impair: []}"), "nemesis.impair: expected at least 1 items"),
        (f"{text_of('{}')}{CUT.replace('cut,', 'nemesis-1,')}",
         "events[0].id: ids that begin with"),
        (changed("budget:", CUT.replace("host: b", "host: b, process: driver") + "budget:"),
         "events[0].whom.process: partition affects links and not processes"),
        (changed("budget:", CUT.replace("partition: 2s", "partition: 61s") + "budget:"),
         "events[0].act.partition: expected at most"),
        (changed("budget:", CUT.replace("partition: 2s", "partition: 2s, pause: 1s") + "budget:"),
         "expected exactly one of pause, kill, partition, impair"),
        (changed("budget:", CUT + "budget:").replace("link: {between: [a, b]",
                                                     "link: {between: [a, b], backend: netem"),
         "events[0].act.partition: only the relay changes links during a run"),
        (f"{GOOD}nemesis: {{}}\n", "nemesis: the nemesis needs `applications`, and no `traffic`"),
        (f"{GOOD}{CUT}", "events[0].act.partition: the streams of `traffic` need a fault rule"),
    ],
)  # fmt: skip
def test_locates_an_error(text, fault):
    found = faults_of(text)
    assert any(fault in each for each in found), found


def test_without_a_nemesis_nothing_is_drawn():
    assert resolved(SAMPLE).events == ()
