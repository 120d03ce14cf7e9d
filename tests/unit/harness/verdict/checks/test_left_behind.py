"""A subscriber that its sender did not wait for is the scenario's fault, others are not."""

from dataclasses import replace

import pytest

from tests.unit.harness.verdict import synthetic_group
from tests.unit.harness.verdict.synthetic_group import CHANNEL
from tests.unit.harness.verdict.synthetic_loss import change
from tests.unit.harness.verdict.synthetic_run import INITIAL_TERM_ID, TERM_LENGTH, make_run
from windtunnel.harness.artifact.host.application import PublisherFacts, SubscriberFacts
from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.dissect.frames.flow import positions
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.verdict.checks import left_behind
from windtunnel.harness.verdict.checks.delivery.delivery import delivered_once
from windtunnel.harness.verdict.checks.left_behind import (
    blame_scenario,
    blame_scenario_for_waiting,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import AtFault, failed
from windtunnel.harness.verdict.core.wire import status_messages

WINDOW = 32_768
"""The largest receiver window of the synthetic stream: half of its term."""
FINDING = "subject_lived"


class Group:
    """The synthetic group, in which subscriber b ended early."""

    def __init__(self, path, patch):
        self.run = make_run(path, drops=False)
        synthetic_group.join(self.run, patch, first="b")

    def blame(self, flow_control, *, behind=WINDOW + 32, name=None, events=(), **facts):
        change(self.run, channel=CHANNEL + flow_control)
        path = synthetic_group.write(self.run)
        document = self.run.folder.host("b").subscriber(self.run.traffic.id).document
        end = self.run.log.end_position - behind
        own = {"end_position": end, "eos_seen": False, "error": "the image was closed", **facts}
        replace(SubscriberFacts.read(document), **own).write(document)
        name = name or f"b/subscriber-{self.run.traffic.id}"
        write_applied_events(self.run.folder.host_events, list(events))
        evidence = Evidence(path)
        ordered = tuple(
            EventCase(
                id=each.id, host=each.host, process=each.processes[0], trigger="delivered", at=1,
                action=each.action, lasts_ns=1,
            )
            for each in events
        )  # fmt: skip
        evidence.case = evidence.case.model_copy(update={"events": ordered})
        return blame_scenario(evidence, failed(FINDING, "it ended", name))

    def wait_in_vain(
        self, flow_control, names=("b/subscriber-{id}",), published=None, events=(), **facts
    ):
        """Blame for a run that these subscribers did not let end. `published` are the facts of the
        publisher that differ, and `facts` those of subscriber b.
        """
        change(self.run, channel=CHANNEL + flow_control)
        path = synthetic_group.write(self.run)
        document = self.run.folder.host("b").subscriber(self.run.traffic.id).document
        absent = {"session_id": 0, "message_count": 0, "end_position": 0, "eos_seen": False}
        replace(SubscriberFacts.read(document), **absent | facts).write(document)
        document = self.run.folder.host("a").publisher(self.run.traffic.id).document
        replace(PublisherFacts.read(document), **published or {}).write(document)
        write_applied_events(self.run.folder.host_events, list(events))
        waiting = {each.format(id=self.run.traffic.id) for each in names}
        evidence, ids = Evidence(path), tuple(each.id for each in events)
        evidence.case = evidence.case.model_copy(update={"events": ids})
        return blame_scenario_for_waiting(evidence, failed(FINDING, "it did not end"), waiting)


@pytest.fixture
def group(tmp_path, monkeypatch):
    return Group(tmp_path, monkeypatch)


@pytest.mark.parametrize("flow_control", ["", "|fc=max", "|fc=tagged,g:7/1"])
def test_a_receiver_that_the_sender_never_waits_for_is_the_scenarios_fault(group, flow_control):
    finding = group.blame(flow_control)
    assert finding.at_fault is AtFault.SCENARIO
    assert finding.text.startswith(f"it ended; it was {WINDOW + 32:,} bytes behind: fc=")
    assert finding.text.endswith(": use fc=min,g:/2, or name the receiver in `partial`")


@pytest.mark.parametrize(
    ("recorded", "event", "flow_control", "is_blamed"),
    [
        ("b", ("b", "archive"), "|fc=max", True),
        ("b", ("b", "archive"), "|fc=min,g:/2", False),
        ("b", ("b", "publisher"), "|fc=max", False),
        ("b", ("a", "archive"), "|fc=max", False),
        ("", ("b", "archive"), "|fc=max", False),
    ],
)
def test_a_receiver_that_a_killed_archive_held_back_is_the_scenarios_fault(
    group, recorded, event, flow_control, is_blamed
):
    host, process = event
    change(group.run, recorded=recorded)
    killed = AppliedEvent("crash", host, "kill", [process], 900, 1_001)
    finding = group.blame(flow_control, behind=32, events=[killed])
    assert (finding.at_fault is AtFault.SCENARIO) == is_blamed


@pytest.mark.parametrize("flow_control", ["|fc=min", "|fc=min,g:/2"])
def test_a_receiver_that_the_sender_waits_for_is_not_the_scenarios_fault(group, flow_control):
    finding = group.blame(flow_control)
    assert (finding.text, finding.at_fault) == ("it ended", None)


@pytest.mark.parametrize(
    ("ahead", "outcome"), [(TERM_LENGTH // 2, None), (TERM_LENGTH // 2 + 32, AtFault.SCENARIO)]
)
def test_a_receiver_whose_status_messages_were_ignored_is_the_scenarios_fault(
    group, monkeypatch, ahead, outcome
):
    tops = []

    def highest_sent_at(wire, times_ns, start):
        at = positions(status_messages(wire.feedback_arrived), INITIAL_TERM_ID, TERM_LENGTH)
        tops.append(at)
        return at + ahead

    monkeypatch.setattr(left_behind, "highest_sent_at", highest_sent_at)
    assert group.blame("|fc=min").at_fault is outcome
    assert len(tops[0]) > 0


@pytest.mark.parametrize(
    "facts",
    [
        {"behind": WINDOW},
        {"error": None},
        {"eos_seen": True},
        {"name": "c/subscriber-other"},
        {"name": "b/driver"},
    ],
)
def test_other_ends_are_not_explained_by_flow_control(group, facts):
    assert group.blame("|fc=max", **facts).at_fault is None


def test_a_message_that_an_untagged_receiver_misses_is_the_scenarios_fault(group):
    group.run.messages = group.run.messages[:-3]
    change(group.run, channel=f"{CHANNEL}|fc=tagged,g:7/1")
    path = synthetic_group.write(group.run)
    flow = next(each for each in group.run.traffic.flows if each.to_host == "b")
    finding = delivered_once(Evidence(path), flow)
    assert finding.at_fault is AtFault.SCENARIO
    assert "fc=tagged with a group of 1 does not wait for this receiver" in finding.text


@pytest.mark.parametrize("flow_control", ["|fc=max", "|fc=min", "|fc=min,g:/1"])
def test_a_receiver_that_never_joined_is_the_scenarios_fault(group, flow_control):
    finding = group.wait_in_vain(flow_control)
    assert finding.at_fault is AtFault.SCENARIO
    assert f"b/subscriber-{group.run.traffic.id} never joined: fc=" in finding.text


def test_a_receiver_that_joined_late_and_lost_its_image_is_the_scenarios_fault(group):
    finding = group.wait_in_vain("|fc=min", session_id=7, end_position=0)
    assert finding.at_fault is AtFault.SCENARIO
    end = group.run.log.end_position
    assert f"lost its image {end:,} bytes before the end: fc=min with a group" in finding.text


@pytest.mark.parametrize(
    ("flow_control", "more"),
    [
        ("|fc=min,g:/2", {}),
        ("|fc=min,g:/2", {"message_count": 1}),
        ("|fc=min,g:/2", {"session_id": 7}),
        ("|fc=min", {"session_id": 7, "eos_seen": True}),
        ("|fc=min", {"published": {"error": "it died"}}),
        ("|fc=min", {"published": {"ended_ns": 0}}),
        ("|fc=min", {"names": ("b/subscriber-{id}", "c/subscriber-{id}")}),
        ("|fc=min", {"names": ()}),
    ],
)
def test_other_runs_that_do_not_end_are_not_explained(group, flow_control, more):
    finding = group.wait_in_vain(flow_control, **more)
    assert (finding.text, finding.at_fault) == ("it did not end", None)


JOINED = {"session_id": 7, "message_count": 5, "published": {"ended_ns": 1_000}}


def kill(*, host="b", process="driver", action="kill", ended_ns=1_001):
    return AppliedEvent("crash", host, action, [process], 900, ended_ns)


def test_a_stream_that_ended_before_its_driver_was_restarted_is_the_scenarios_fault(group):
    finding = group.wait_in_vain("|fc=min,g:/2", **JOINED, events=[kill()])
    assert finding.at_fault is AtFault.SCENARIO
    text = "waits for more of a stream that ended before 'crash' restarted its driver"
    assert finding.text.endswith(f"b/subscriber-{group.run.traffic.id} {text}")


def test_an_archive_beside_a_receiver_that_never_joined_records_nothing(group):
    change(group.run, recorded="b")
    names = ("b/recorder-{id}", "b/subscriber-{id}")
    finding = group.wait_in_vain("|fc=max", names=names)
    assert finding.at_fault is AtFault.SCENARIO
    assert f"b/recorder-{group.run.traffic.id} never joined: fc=max" in finding.text


@pytest.mark.parametrize(
    ("recorded", "event", "is_explained"),
    [
        ("b", kill(process="archive"), True),
        ("b", kill(process="archive", ended_ns=1_000), False),
        ("b", kill(process="driver"), False),
        ("b", kill(process="archive", host="a"), False),
        ("a", kill(process="archive", host="a"), True),
        ("", kill(process="archive"), False),
    ],
)
def test_a_stream_that_ended_before_its_archive_was_restarted_is_the_scenarios_fault(
    group, recorded, event, is_explained
):
    change(group.run, recorded=recorded)
    names = (f"{recorded or 'b'}/recorder-{{id}}",)
    facts = {**JOINED, "eos_seen": True}
    finding = group.wait_in_vain("|fc=min,g:/2", names=names, events=[event], **facts)
    assert (finding.at_fault is AtFault.SCENARIO) == is_explained
    assert ("ended before 'crash' restarted its archive" in finding.text) == is_explained


def test_a_replay_waits_for_what_its_archive_does_not_record(group):
    first = group.run.traffic
    replay = first.model_copy(
        update={"id": "again", "replays": first.id, "from_host": "b", "to_host": "a"}
    )
    recorded = first.model_copy(update={"recorded": "b"})
    group.run.case = group.run.case.model_copy(update={"traffic": (recorded, replay)})
    names = ("a/subscriber-again", "b/publisher-again", "b/recorder-{id}")
    facts = {**JOINED, "eos_seen": True}
    archive = kill(process="archive")
    finding = group.wait_in_vain("|fc=min,g:/2", names=names, events=[archive], **facts)
    assert finding.at_fault is AtFault.SCENARIO
    assert f"b/recorder-{first.id} waits for more of a stream" in finding.text
    finding = group.wait_in_vain("|fc=min,g:/2", names=names[:2], events=[archive], **facts)
    assert f"a/subscriber-again waits for '{first.id}', of which nothing more" in finding.text


@pytest.mark.parametrize(
    ("event", "facts"),
    [
        (kill(host="a"), {}),
        (kill(process="publisher"), {}),
        (kill(action="pause"), {}),
        (kill(ended_ns=1_000), {}),
        (kill(), {"eos_seen": True}),
    ],
)
def test_other_waits_after_an_event_are_not_explained(group, event, facts):
    finding = group.wait_in_vain("|fc=min,g:/2", **JOINED, events=[event], **facts)
    assert (finding.text, finding.at_fault) == ("it did not end", None)


@pytest.mark.parametrize(
    ("late_ms", "linger", "outcome"),
    [(3_000, "2s", AtFault.SCENARIO), (3_000, "4s", None), (6_000, "", AtFault.SCENARIO)],
)
def test_gaps_that_outlive_the_publication_are_the_scenarios_fault(
    tmp_path, late_ms, linger, outcome
):
    run = make_run(tmp_path)
    naks = [each for host in "ab" for each in run.packets[host] if each.kind == "NAK"]
    assert naks
    for each in naks:
        each.time_ns = run.now_ns + late_ms * 1_000_000
    if linger:
        change(run, channel=f"{run.traffic.channel}|linger={linger}")
    path = run.write()
    document = run.folder.host("b").subscriber(run.traffic.id).document
    own = {"end_position": run.log.end_position - 32, "eos_seen": False, "error": "it was closed"}
    replace(SubscriberFacts.read(document), **own).write(document)
    name = f"b/subscriber-{run.traffic.id}"
    finding = blame_scenario(Evidence(path), failed(FINDING, "it ended", name))
    assert finding.at_fault is outcome
    assert ("came after the publication's linger time of" in finding.text) == bool(outcome)
