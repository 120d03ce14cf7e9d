"""Temporary impairments: valid and invalid files, the resolved case, and its explanation."""

import pytest

from tests.unit.harness.scenario.applications.sample import SAMPLE, changed, resolved
from tests.unit.harness.scenario.test_scenario_loader import GOOD, faults_of
from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.orchestrate.suite.runner import plan
from windtunnel.harness.scenario.explain.explain import explain
from windtunnel.harness.scenario.loader import ScenarioError, parse_scenario
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, LossCase

MS = 1_000_000
LOSS = LossCase(model="iid", shares_ppb=(10**8,))


def event(whom="link: a->b", impair="loss: 10%, for: 2s", when="after: 1s", act="impair"):
    act = f"{act}: {{{impair}}}"
    return f"events: [{{id: storm, whom: {{{whom}}}, when: {{{when}}}, act: {{{act}}}}}]\n"


def text_of(**options):
    return changed("budget:", f"{event(**options)}budget:")


def with_traffic(**options):
    return GOOD.replace("expect:", f"{event(**options)}expect:")


def test_the_case_has_the_impairments_of_each_direction(tmp_path):
    (found,) = resolved(text_of()).events
    assert (found.action, found.host, found.lasts_ns, found.roles) == ("impair", "", 2000 * MS, ())
    assert found.impairments == (ImpairmentCase(link="a->b", loss=LOSS),)
    case = resolved(text_of(whom="host: b", impair="delay: 50ms, for: 2s"))
    assert [(each.link, each.delay_ns) for each in case.events[0].impairments] == [
        ("a->b", 50 * MS),
        ("b->a", 50 * MS),
    ]
    assert case.changes_links
    # The relay counts the packets of all directions from the start.
    assert [each.link for each in case.impairments] == ["a->b", "b->a"]
    case.write(tmp_path / "case.json")
    assert Case.read(tmp_path / "case.json") == case


def test_it_is_explained():
    text = explain(resolved(text_of(whom="link: both", impair="loss: 10%, delay: 50ms, for: 2s")))
    assert (
        "  storm: a->b, b->a impaired for 2s, 1s after all applications were ready\n"
        "      loss iid 10%: 10.000% of the packets, in bursts of 1.11 on average\n"
        "      delay 50ms\n"
    ) in text


def test_streams_may_be_impaired_temporarily_too():
    scenario = parse_scenario(with_traffic(when="delivered: 512KiB"), "made.yaml")
    assert scenario.changes_links


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (text_of(whom="link: a->c"), "events[0].whom.link: expected a->b, b->a or both, found"),
        (text_of(whom="link: a-b"), "events[0].whom.link"),
        (text_of(whom="host: c"), "events[0].whom.host: expected one of the hosts a, b, found 'c'"),
        (text_of(whom="host: b, link: both"), "expected exactly one of host, link"),
        (text_of(whom="process: driver"), "expected exactly one of host, link"),
        (text_of(whom="host: b, process: driver"), "events[0].whom.process: impair affects links"),
        (text_of(impair="for: 2s"), "expected at least one of loss, delay"),
        (text_of(impair="loss: 10%"), "events[0].act.impair.for"),
        (text_of(impair="loss: 10%, for: 0s"), "events[0].act.impair.for"),
        (text_of(impair="loss: 10, for: 2s"), "events[0].act.impair.loss"),
        (text_of(impair="queue: 9, for: 2s"), "events[0].act.impair.queue: needs a rate"),
        (text_of(impair="delay: {mean: 2ms, jitter: 3ms}, for: 2s"),
         "events[0].act.impair.delay.jitter: expected at most the mean"),
        (text_of(impair="loss: 10%, for: 20s"), "the event occurs or ends after budget.wall"),
        (text_of(when="published: 1MiB"), "there is no traffic: use `after`"),
        (text_of(whom="link: a->b", act="kill", impair="restart_after: 1s"),
         "events[0].whom.link: a kill affects processes: write `host` in place of `link`"),
        (SAMPLE.replace("budget:", "events: [{id: cut, whom: {link: both}, when: {after: 1s}, "
                        "act: {partition: 1s}}]\nbudget:"),
         "events[0].whom.link: a partition cuts a host off: write `host`"),
        (text_of().replace("link: {between: [a, b]", "link: {between: [a, b], backend: netem"),
         "events[0].act.impair: only the relay changes links during a run: write `backend: relay`"),
        (with_traffic(impair="loss: 100%, for: 1s"),
         "events[0].act.impair.loss: the streams of `traffic` need a fault rule instead"),
    ],
)  # fmt: skip
def test_locates_an_error(text, fault):
    found = faults_of(text)
    assert any(fault in each for each in found), found


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"link": "a->c"}, "events[0].impairments.link: expected one of a->b, b->a, found 'a->c'"),
        ({"loss": LOSS.model_copy(update={"shares_ppb": (2 * 10**9,)})}, "shares_ppb"),
        ({"delay_ns": -1}, "events[0].impairments.delay_ns: expected 0 to"),
    ],
)
def test_an_invalid_case_is_rejected(tmp_path, values, fault):
    case = resolved(text_of())
    (storm,) = case.events
    wrong = tuple(each.model_copy(update=values) for each in storm.impairments)
    storm = storm.model_copy(update={"impairments": wrong})
    case.model_copy(update={"events": (storm,)}).write(tmp_path / "case.json")
    with pytest.raises(DocumentError) as found:
        Case.read(tmp_path / "case.json")
    assert fault in str(found.value)


@pytest.mark.parametrize("more", [event(), event(whom="host: b", impair="", act="partition")])
def test_no_option_changes_the_backend_of_links_that_events_change(tmp_path, more):
    more = more.replace("partition: {}", "partition: 1s")
    file = tmp_path / "made.yaml"
    file.write_text(changed("budget:", f"{more}budget:"))
    assert len(plan([file], None, None, "relay", allow_commands=True)) == 1
    with pytest.raises(ScenarioError, match="only the relay can: omit --backend netem"):
        plan([file], None, None, "netem", allow_commands=True)
    file.write_text(SAMPLE)
    assert len(plan([file], None, None, "netem", allow_commands=True)) == 1


def test_impairments_of_the_link_count_for_the_requirements_of_an_event():
    own = "impairments: {both: {delay: 5ms}}"
    for impair in ("reorder: {share: 1%}, for: 2s", "delay: {mean: 9ms, jitter: 9ms}, for: 2s"):
        assert resolved(text_of(impair=impair)).changes_links
    bare = text_of(impair="reorder: {share: 1%}, for: 2s").replace(f", {own}", "")
    assert any("act.impair.reorder: needs a delay" in each for each in faults_of(bare))


def test_more_changes_than_a_run_records_are_rejected():
    hosts = [f"h{index}" for index in range(20)]
    links = ", ".join(f"{{between: [a, {host}]}}" for host in hosts)
    network = f"hosts: [a, {', '.join(hosts)}]\n  links: [{links}]"
    storms = ", ".join(
        f"{{id: s-{index}, whom: {{host: a}}, when: {{after: 1s}}, "
        "act: {impair: {loss: 1%, for: 1s}}}"
        for index in range(26)
    )
    text = SAMPLE.replace(
        "hosts: [a, b]\n  link: {between: [a, b], impairments: {both: {delay: 5ms}}}", network
    )
    text = text.replace("on: b", "on: h1").replace("${b}", "${h1}")
    text = text.replace("budget:", f"events: [{storms}]\nbudget:")
    assert any(
        "events: the events change link directions 2080 times, expected at most 2000" in each
        for each in faults_of(text)
    )
