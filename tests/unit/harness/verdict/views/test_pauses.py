"""Paused time, which does not count, and the gate on host events."""

import numpy as np
import pytest

from tests.unit.harness.verdict.checks.flow_control.test_status_message_checks import messages, wait
from tests.unit.harness.verdict.judged import gated
from tests.unit.harness.verdict.synthetic_run import STEP_NS, SyntheticRun, make_run
from tests.unit.harness.verdict.synthetic_times import write_times
from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, LossCase
from windtunnel.harness.scenario.resolved.link_change import LinkChange, LinkChanges, LinkCounts
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.verdict.checks.flow_control.status_message_checks import (
    status_messages_on_time,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.gates.event_gates import events_happened
from windtunnel.harness.verdict.views.pauses import Pauses, pauses_of

ORDERED = EventCase(
    id="freeze", host="b", process="driver", trigger="delivered", at=1, action="pause",
    lasts_ns=300 * STEP_NS,
)  # fmt: skip


def numbers(*values):
    return np.array(values, dtype=np.int64)


PAUSES = Pauses(numbers(100, 300), numbers(150, 350))


@pytest.mark.parametrize(
    ("start", "end", "still"),
    [(0, 50, 0), (0, 100, 0), (0, 120, 20), (110, 120, 10), (120, 320, 50), (0, 999, 100)],
)
def test_paused_time_within_ranges(start, end, still):
    assert PAUSES.within_ns(numbers(start), numbers(end)).tolist() == [still]


@pytest.mark.parametrize(
    ("start", "due"),
    [(0, 80), (20, 100), (30, 160), (120, 230), (200, 280), (230, 360), (400, 480)],
)
def test_a_deadline_is_extended_by_paused_time(start, due):
    assert PAUSES.due_ns(numbers(start), 80).tolist() == [due]


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def happen(run, *events):
    path = run.write()
    run.case.model_copy(update={"events": (ORDERED,)}).write(run.folder.case)
    write_applied_events(run.folder.host_events, list(events))
    return Evidence(path)


def pause(began_ns, ended_ns, **changed):
    values = {"id": "freeze", "host": "b", "action": "pause", "processes": ["driver"]}
    return AppliedEvent(**{**values, **changed}, began_ns=began_ns, ended_ns=ended_ns)


def test_only_the_drivers_pauses_on_that_host_count(run):
    found = pauses_of(
        happen(
            run,
            pause(400, 450),
            pause(100, 200),
            pause(150, 250),
            pause(500, 600, host="a"),
            pause(700, 800, processes=["subscriber"]),
            pause(900, 0),
        ),
        "b",
    )
    assert (found.starts_ns.tolist(), found.ends_ns.tolist()) == ([100, 400], [250, 450])


def test_silence_is_no_fault_while_the_driver_is_paused(run):
    last = messages(run)[5]
    wait(run, last.time_ns, 500 * STEP_NS)
    assert status_messages_on_time(Evidence(run.write()), run.traffic).outcome is Outcome.FAIL
    begun = last.time_ns + STEP_NS
    evidence = happen(run, pause(begun, begun + 300 * STEP_NS))
    assert status_messages_on_time(evidence, run.traffic).outcome is Outcome.PASS
    evidence = happen(run, pause(begun, begun + 150 * STEP_NS))
    assert status_messages_on_time(evidence, run.traffic).outcome is Outcome.FAIL
    evidence = happen(run, pause(begun, begun + 300 * STEP_NS, host="a"))
    assert status_messages_on_time(evidence, run.traffic).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("events", "outcome", "word"),
    [
        ([pause(100, 100 + 300 * STEP_NS)], Outcome.PASS, "pause of driver on b"),
        ([pause(100, 99 + 300 * STEP_NS)], Outcome.INCONCLUSIVE, "expected at least"),
        ([pause(100, 100 + 801 * STEP_NS)], Outcome.INCONCLUSIVE, "expected"),
        ([pause(100, 0)], Outcome.INCONCLUSIVE, "expected at least"),
        (
            [pause(100, 100 + 300 * STEP_NS, processes=[])],
            Outcome.INCONCLUSIVE,
            "no driver process",
        ),
        ([pause(100, 100 + 300 * STEP_NS, host="a")], Outcome.HARNESS, "expected pause on"),
        ([], Outcome.INCONCLUSIVE, "did not happen"),
    ],
)
def test_an_event_must_have_happened_as_specified(run, events, outcome, word):
    (finding,) = events_happened(happen(run, *events))
    assert finding.outcome is outcome
    assert word in finding.text


def due(run, trigger, at, traffic=True):
    """Return the finding about an event that did not happen, and was due at this moment."""
    path = run.write()
    start_ns = run.now_ns
    count = run.plan.count
    write_times(run, [start_ns] * count, [start_ns + 97_700_000] * len(run.messages))
    event = ORDERED.model_copy(update={"trigger": trigger, "at": at})
    changed = {"events": (event,)} if traffic else {"events": (event,), "traffic": ()}
    run.case.model_copy(update=changed).write(run.folder.case)
    write_applied_events(run.folder.host_events, [])
    return path


@pytest.mark.parametrize(
    ("trigger", "at", "text"),
    [
        (
            "after",
            2 * 10**9,
            "event freeze, due 2s after the first message, did not happen: the traffic ended after "
            "97.7 ms; use an earlier time or more traffic",
        ),
        (
            "after",
            90_000_000,
            "event freeze, due 90ms after the first message, did not happen: the traffic ended "
            "after 97.7 ms",
        ),
        (
            "delivered",
            1 << 19,
            "event freeze, due when 512KiB has been delivered, did not happen: the traffic ended "
            "after 97.7 ms",
        ),
    ],
)
def test_an_event_that_did_not_happen_is_named_with_when_it_was_due(run, trigger, at, text):
    (finding,) = events_happened(Evidence(due(run, trigger, at)))
    assert (finding.outcome, finding.text) == (Outcome.INCONCLUSIVE, text)


def test_unknown_facts_about_an_event_are_left_out(run):
    path = due(run, "after", 2 * 10**9)
    run.folder.host("b").subscriber(run.traffic.id).times.unlink()
    (finding,) = events_happened(Evidence(path))
    assert finding.text == "event freeze, due 2s after the first message, did not happen"
    (finding,) = events_happened(Evidence(due(run, "after", 10**9, traffic=False)))
    assert finding.text == (
        "event freeze, due 1s after all applications were ready, did not happen"
    )


def test_a_run_without_its_event_file_cannot_be_judged(run):
    evidence = happen(run)
    run.folder.host_events.unlink()
    (finding,) = gated(events_happened, evidence)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "host-events.json" in finding.text


def test_a_case_without_events_needs_no_event_file(run):
    (finding,) = events_happened(Evidence(run.write()))
    assert finding.outcome is Outcome.PASS


CUT = EventCase(
    id="cut", host="b", process="all", trigger="after", at=1, action="partition", lasts_ns=100
)


def partitioned(run, *changes, event=CUT, ended_ns=200):
    path = run.write()
    run.case.model_copy(update={"events": (event,)}).write(run.folder.case)
    applied = AppliedEvent("cut", "b", "partition", [], 100, ended_ns)
    write_applied_events(run.folder.host_events, [applied])
    lost = LossCase(model="iid", shares_ppb=(10**9,))
    made = (
        LinkChange(
            number=1,
            at_ns=at_ns,
            impairments=ImpairmentCase(link=link, loss=lost),
            counts=LinkCounts(),
        )
        for link, at_ns in changes
    )
    LinkChanges(changes=tuple(made)).write(run.folder.link_changes)
    (finding,) = events_happened(Evidence(path))
    return finding


def test_a_partition_must_have_been_applied_by_the_relay(run):
    found = partitioned(run, ("a->b", 110), ("b->a", 110))
    assert (found.outcome, found.text) == (Outcome.PASS, "partition of host b for 100 ns")
    for changes in ([], [("a->b", 110)], [("a->b", 50), ("b->a", 110)]):
        found = partitioned(run, *changes)
        assert found.outcome is Outcome.INCONCLUSIVE
        assert "link-changes.json has no such change of its links" in found.text
    found = partitioned(run, ("a->b", 110), ("b->a", 110), ended_ns=150)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "expected at least 100 ns" in found.text


LOSS = LossCase(model="iid", shares_ppb=(10**8,))
STORM = EventCase(
    id="storm", host="", process="driver", trigger="after", at=1, action="impair", lasts_ns=100,
    impairments=(ImpairmentCase(link="a->b", loss=LOSS),),
)  # fmt: skip


def impaired(run, *changes):
    path = run.write()
    run.case.model_copy(update={"events": (STORM,)}).write(run.folder.case)
    applied = AppliedEvent("storm", "", "impair", [], 100, 200)
    write_applied_events(run.folder.host_events, [applied])
    made = (
        LinkChange(
            number=1,
            at_ns=at_ns,
            impairments=ImpairmentCase(link=link, loss=loss, delay_ns=5),
            counts=LinkCounts(),
        )
        for link, at_ns, loss in changes
    )
    LinkChanges(changes=tuple(made)).write(run.folder.link_changes)
    (finding,) = events_happened(Evidence(path))
    return finding


def test_temporary_impairments_must_have_been_set_and_removed_by_the_relay(run):
    begin, end = ("a->b", 110, LOSS), ("a->b", 210, None)
    found = impaired(run, begin, end)
    assert (found.outcome, found.text) == (Outcome.PASS, "impair of a->b for 100 ns")
    other = LossCase(model="iid", shares_ppb=(10**7,))
    for changes in (
        [begin],
        [end],
        [("b->a", 110, LOSS), ("b->a", 210, None)],
        [("a->b", 50, LOSS), end],
        [("a->b", 110, other), end],
    ):
        found = impaired(run, *changes)
        assert found.outcome is Outcome.INCONCLUSIVE, changes
        assert "link-changes.json has no such change of its links" in found.text


def test_impairments_may_begin_during_a_partition(run):
    lost = LossCase(model="iid", shares_ppb=(10**9,))
    found = impaired(run, ("a->b", 110, lost), ("a->b", 210, None))
    assert found.outcome is Outcome.PASS, found.text


def test_a_drawn_event_that_affected_nothing_is_no_reason_to_doubt_a_run(run):
    drawn = ORDERED.model_copy(update={"drawn": True})
    path = run.write()
    run.case.model_copy(update={"events": (drawn,)}).write(run.folder.case)
    for happened in ([], [pause(1, 2, processes=[])]):
        write_applied_events(run.folder.host_events, happened)
        (finding,) = events_happened(Evidence(path))
        assert finding.outcome is Outcome.PASS
        assert "affected nothing" in finding.text


@pytest.mark.parametrize("has_traffic", [True, False])
def test_applications_may_pass_although_a_pause_was_longer(run, has_traffic):
    if not has_traffic:
        run.case = run.case.model_copy(update={"traffic": ()})
    (finding,) = events_happened(happen(run, pause(1, 10**9)))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert finding.advisory is not has_traffic
