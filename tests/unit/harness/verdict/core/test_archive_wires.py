"""What archives send to each other is in a host's counters: what is compared must include it."""

import pytest

from tests.unit.harness.verdict.synthetic_replication import SOCKET, replicate
from tests.unit.harness.verdict.synthetic_run import (
    SESSION_ID,
    STREAM_ID,
    Packet,
    SyntheticRun,
    make_run,
    nak,
)
from windtunnel.harness.scenario.schema.merge import MergeCase
from windtunnel.harness.verdict.checks.counters.packet_counts import counters_agree_with_packets
from windtunnel.harness.verdict.checks.counters.rejected_datagrams import (
    invalid_packets_counted,
    over_under_runs_counted,
)
from windtunnel.harness.verdict.checks.retransmission.nak_response import retransmits_counted
from windtunnel.harness.verdict.checks.retransmission.recovery import naks_and_retransmits_agree
from windtunnel.harness.verdict.core.archive_wires import archive_wires
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

TOTALS = (
    (counters_agree_with_packets, "a/0"),
    (counters_agree_with_packets, "a/6"),
    (counters_agree_with_packets, "b/1"),
    (counters_agree_with_packets, "b/7"),
    (naks_and_retransmits_agree, "a/6"),
    (naks_and_retransmits_agree, "a/36"),
    (naks_and_retransmits_agree, "b/5"),
    (retransmits_counted, "a/11"),
    (over_under_runs_counted, "b/13"),
)
"""Checks of the counters of a whole driver, and counters that they compare."""
MERGE = MergeCase(after_bytes=1, live="aeron:udp?endpoint=b:3|control=a:2", port=3)


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    made = make_run(tmp_path)
    replicate(made)
    # The sender has certainly processed all NAKs.
    for packets in made.packets.values():
        packets[-1].time_ns += 10**9
    return made


def outcomes(run, check):
    findings = check(Evidence(run.write()), list(run.case.traffic))
    return {each.outcome for each in findings}, [each.text for each in findings]


def test_a_replication_is_a_stream_of_its_own(run):
    ((flow, wire),) = archive_wires(Evidence(run.write()))
    assert (flow.from_host, flow.to_host, flow.port) == ("a", "b", 8030)
    assert (wire.facts.session_id, wire.facts.stream_id) == (SESSION_ID, STREAM_ID)
    assert wire.retransmitted().sum() == 1
    assert len(wire.naks(wire.feedback_sent)) == len(wire.naks(wire.feedback_arrived)) == 1
    assert {*wire.sent.frames["source_port"].tolist()} == {SOCKET}


@pytest.mark.parametrize(("check", "name"), TOTALS)
def test_the_totals_of_a_driver_include_a_replication(run, check, name):
    found, texts = outcomes(run, check)
    assert found == {Outcome.PASS}, texts
    run.values[name] = run.values.get(name, 0) + 1
    assert Outcome.FAIL in outcomes(run, check)[0]


@pytest.mark.parametrize(("check", "name"), [each for each in TOTALS if each[1][0] == "b"])
def test_a_replay_over_the_loopback_may_add_to_the_totals(run, check, name):
    traffic = run.traffic.model_copy(update={"merges": MERGE})
    run.case = run.case.model_copy(update={"traffic": (traffic,)})
    run.values[name] = run.values.get(name, 0) + 1_000
    found, texts = outcomes(run, check)
    assert found == {Outcome.PASS}, texts
    if name in ("b/5", "b/7"):
        run.values[name] -= 1_001
        assert Outcome.FAIL in outcomes(run, check)[0]


def test_an_invalid_frame_of_a_replication_may_be_counted(run):
    # A NAK whose range ends behind the term, while the stream exists.
    at = [each for each in run.packets["a"] if each.kind == "SM" and each.source == "b"][2]
    wrong = Packet(at.time_ns + 1, "b", "a", (8030, SOCKET), nak(65504, 4096), "NAK")
    run.packets["a"].append(wrong)
    for count, outcome in ((0, Outcome.PASS), (1, Outcome.PASS), (2, Outcome.FAIL)):
        run.values["a/14"] = count
        assert outcome in outcomes(run, invalid_packets_counted)[0], count
        assert (
            outcome is Outcome.FAIL or Outcome.FAIL not in outcomes(run, invalid_packets_counted)[0]
        )
