"""A receiver for which its sender does not wait is judged by Aeron's guarantees for it."""

from dataclasses import replace

import pytest

from tests.unit.harness.verdict import synthetic_group
from tests.unit.harness.verdict.synthetic_group import CHANNEL
from tests.unit.harness.verdict.synthetic_loss import change
from tests.unit.harness.verdict.synthetic_run import make_run
from windtunnel.harness.artifact.host.application import SubscriberFacts
from windtunnel.harness.scenario.resolved.unawaited import waits_for
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.delivery.delivery import delivered_once
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import AtFault
from windtunnel.harness.verdict.core.outcome import Outcome

LATE = 12
WAITS = f"{CHANNEL}|fc=min,g:/2"


class Group:
    """The synthetic group, in which subscriber b joined late. Subscriber c joined at the start."""

    def __init__(self, path, patch, channel=CHANNEL):
        self.run = make_run(path, drops=False)
        starts = self.run.log.frames["position"][self.run.log.frames["message"] == LATE]
        self.join = int(starts[0])
        self.all = list(self.run.messages)
        synthetic_group.join(self.run, patch, first="b")
        change(self.run, channel=channel)

    def judge(self, messages, *, others_join=0):
        """Judge b's delivery of these messages, if c joined at another position."""
        path = synthetic_group.write(self.run)
        self._joined("c", others_join)
        self.run.messages = messages
        self.run.write()
        self._joined("b", self.join)
        flow = next(each for each in self.run.traffic.flows if each.to_host == "b")
        return delivered_once(Evidence(path), flow)

    def _joined(self, host, position):
        document = self.run.folder.host(host).subscriber(self.run.traffic.id).document
        replace(SubscriberFacts.read(document), join_position=position).write(document)


@pytest.fixture
def group(tmp_path, monkeypatch):
    return Group(tmp_path, monkeypatch)


def test_a_late_receiver_gets_everything_from_its_join_on(group):
    finding = group.judge(group.all[LATE:])
    assert finding.outcome is Outcome.PASS, finding.text
    assert finding.facts["undelivered_messages"] == LATE
    assert finding.facts["undelivered_bytes"] == sum(group.run.plan.lengths[:LATE].tolist())
    assert f"messages {LATE} to {group.run.plan.count - 1}" in finding.text
    assert "fc=max" in finding.text


def test_a_message_that_a_late_receiver_misses_after_its_join_is_reported(group):
    finding = group.judge(group.all[LATE + 1 :])
    assert (finding.outcome, finding.conclusive) == (Outcome.FAIL, True)
    assert finding.name == "delivered_once"
    assert finding.at_fault is None


def test_a_late_receiver_that_falls_behind_is_the_scenarios_fault(group):
    finding = group.judge(group.all[LATE:-3])
    assert finding.outcome is Outcome.FAIL
    assert finding.at_fault is AtFault.SCENARIO
    assert "never arrived" in finding.text
    assert "fc=max does not wait for this receiver" in finding.text


def test_a_late_receiver_that_the_sender_waits_for_is_the_drivers_fault(tmp_path, monkeypatch):
    group = Group(tmp_path, monkeypatch, WAITS)
    finding = group.judge(group.all[LATE:])
    assert (finding.outcome, finding.conclusive) == (Outcome.FAIL, True)
    assert f"messages 0 to {LATE - 1} are missing" in finding.text
    assert finding.at_fault is None


def test_one_receiver_has_to_start_the_stream(group):
    finding = group.judge(group.all[LATE:], others_join=group.join)
    assert (finding.outcome, finding.conclusive) == (Outcome.FAIL, True)
    assert finding.at_fault is None


@pytest.mark.parametrize(
    ("channel", "receive", "waits"),
    [
        ("fc=max", "", False),
        ("", "", False),
        ("fc=min", "", False),
        ("fc=min,g:/1", "", False),
        ("fc=min,g:/2", "", True),
        ("fc=tagged,g:7/2", "gtag=7", True),
        ("fc=tagged,g:7/2", "gtag=8", False),
        ("fc=tagged,g:7/1", "gtag=7", False),
    ],
)
def test_flow_control_determines_the_receivers_that_a_sender_waits_for(
    tmp_path, monkeypatch, channel, receive, waits
):
    group = Group(tmp_path, monkeypatch, f"{CHANNEL}|{channel}" if channel else CHANNEL)
    stream = f"aeron:udp?endpoint=10.64.1.10:24325{f'|{receive}' if receive else ''}"
    change(group.run, receive=stream)
    parse_channel(stream)
    flow = next(each for each in group.run.traffic.flows if each.to_host == "b")
    assert waits_for(flow) is waits


def test_a_stream_to_one_receiver_always_waits(tmp_path):
    assert waits_for(make_run(tmp_path).traffic)
