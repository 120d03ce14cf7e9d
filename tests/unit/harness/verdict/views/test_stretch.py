"""A subscriber that joined late or was cut off must receive a contiguous, correct range."""

import pytest

from tests.unit.harness.verdict.synthetic_loss import change, joined_at
from tests.unit.harness.verdict.synthetic_run import A_TO_B, B_TO_A, make_run
from windtunnel.harness.scenario.resolved.fault_case import FaultCase, ForgedCase
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.scenario.schema.merge import MergeCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.views.stretch import delivered_unbroken, late_join


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path)


def finding_of(run):
    return delivered_unbroken(Evidence(run.write()), run.traffic)


def test_the_whole_stream_is_a_contiguous_range(run):
    assert finding_of(run).outcome is Outcome.PASS


def test_a_beginning_is_a_contiguous_range(run):
    del run.messages[7:]
    finding = finding_of(run)
    assert finding.outcome is Outcome.PASS
    assert finding.facts["delivered"] == 7


def test_a_gap_is_reported(run):
    del run.messages[7]
    finding = finding_of(run)
    assert (finding.outcome, finding.message, finding.conclusive) == (Outcome.FAIL, 7, True)


def test_a_missing_first_message_is_reported(run):
    del run.messages[0]
    assert (finding_of(run).outcome, finding_of(run).message) == (Outcome.FAIL, 0)


def test_a_wrong_byte_is_reported(run):
    position, content = run.messages[5]
    run.messages[5] = (position, bytes([content[0] ^ 1]) + content[1:])
    finding = finding_of(run)
    assert (finding.outcome, finding.message, finding.byte_offset) == (Outcome.FAIL, 5, 0)


def test_an_extra_message_is_reported(run):
    run.messages.append(run.messages[-1])
    assert finding_of(run).outcome is Outcome.FAIL


def test_nothing_delivered_is_inconclusive(run):
    run.messages.clear()
    assert finding_of(run).outcome is Outcome.INCONCLUSIVE


def test_a_subscriber_connected_first_may_not_join_late(run):
    finding = delivered_unbroken(joined_at(run, 20), run.traffic)
    assert (finding.outcome, finding.conclusive) == (Outcome.FAIL, False)
    assert f"joined at position {finding.position}, expected" in finding.text


@pytest.mark.parametrize(
    "traffic",
    [
        {"rejoins": True},
        {"partial": ("b",)},
        {"merges": MergeCase(after_bytes=1, live="aeron:udp?endpoint=b:1", port=1)},
        {"replays": "one"},
        {"to_hosts": ("b", "c")},
        {"from_hosts": ("a", "c")},
    ],
)
def test_a_late_subscriber_may_join_late(run, traffic):
    evidence = joined_at(run, 20)
    change(run, **traffic)
    assert late(evidence, run) == ""


def late(evidence, run):
    return late_join(evidence, run.traffic, evidence.subscriber(run.traffic))


def rule(action, *types, link=A_TO_B, **more):
    return FaultCase(
        id="rule", links=(link,), frame_types=types, action=action, share_ppb=1, **more
    )


@pytest.mark.parametrize(
    ("fault", "may_be_late"),
    [
        (rule("drop", "SETUP", "SM"), False),
        (rule("hold", "SETUP"), False),
        (rule("corrupt", "DATA"), False),
        (rule("corrupt", "SETUP"), True),
        (rule("inject", "SM", link=B_TO_A, forged=(ForgedCase(type="SM"),)), True),
        (rule("inject", "DATA", forged=(ForgedCase(type="SETUP"),)), True),
        (rule("inject", "DATA", forged=(ForgedCase(type="DATA"),)), False),
    ],
)
def test_a_forged_position_excuses_a_late_join(run, fault, may_be_late):
    run.case = run.case.model_copy(update={"faults": (fault,)})
    assert (late(joined_at(run, 20), run) == "") is may_be_late


def test_a_restarted_subscriber_may_join_late(run):
    kill = EventCase.model_construct(action="kill")
    evidence = joined_at(run, 20)
    evidence.case = run.case.model_copy(update={"events": (kill,)})
    assert late(evidence, run) == ""
