"""Merges: a subscriber must leave its replay, and receive the rest over the link."""

from dataclasses import replace

import pytest

from tests.unit.harness.verdict.synthetic_run import MTU, PORT, TRAFFIC, WINDOW, make_run
from windtunnel.harness.artifact.host.application import SubscriberFacts
from windtunnel.harness.scenario.schema.merge import MergeCase
from windtunnel.harness.verdict.checks.delivery.replay_merge import MERGING_NS, merged_into_live
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import AtFault
from windtunnel.harness.verdict.core.outcome import Outcome

LIVE = PORT + 1


class Merged:
    """The synthetic run with a late subscriber, whose live stream began at some position."""

    def __init__(self, run):
        self.run = run
        merge = MergeCase(after_bytes=1, live=f"aeron:udp?endpoint=b:{LIVE}", port=LIVE)
        traffic = run.traffic.model_copy(update={"merges": merge, "ports": (PORT, LIVE)})
        run.case = run.case.model_copy(update={"traffic": (traffic,)})
        self.starts = [int(each) for each in run.log.frames["position"]]

    def live_from(self, position, without=()):
        """Let copies of the frames sent from a position on arrive on the live port."""
        sent = {self.run.frame_bytes(index): each for index, each in enumerate(self.starts)}
        extra = [
            replace(packet, ports=(packet.ports[0], LIVE))
            for packet in self.run.packets["b"]
            if sent.get(packet.payload, -1) >= position and sent[packet.payload] not in without
        ]
        self.run.packets["b"] += extra
        return self

    def judge(self, merged_position, began_ns=0):
        path = self.run.write()
        document = self.run.folder.host("b").subscriber(TRAFFIC).document
        facts = SubscriberFacts.read(document)
        replace(facts, merged_position=merged_position, started_ns=began_ns).write(document)
        evidence = Evidence(path)
        (finding,) = merged_into_live(evidence, list(evidence.case.traffic))
        return finding


@pytest.fixture
def merged(tmp_path):
    return Merged(make_run(tmp_path))


def test_a_merge_before_the_end_with_all_that_follows_on_the_link_is_a_pass(merged):
    seam = merged.starts[30]
    finding = merged.live_from(merged.starts[25]).judge(seam)
    assert finding.outcome is Outcome.PASS, finding.text
    end = merged.run.log.end_position
    assert finding.facts == {"merged_position": seam, "live_bytes": end - seam - WINDOW}


def test_without_a_merge_there_is_nothing_to_check(tmp_path):
    evidence = Evidence(make_run(tmp_path).write())
    assert merged_into_live(evidence, list(evidence.case.traffic)) == []


def test_a_reader_that_stayed_with_its_replay_fails(merged):
    finding = merged.live_from(0).judge(-1)
    assert finding.outcome is Outcome.FAIL
    assert finding.text == "the subscriber never left its replay"


def test_a_merge_at_the_end_does_not_count(merged):
    finding = merged.live_from(0).judge(merged.run.log.end_position)
    assert "but the stream had ended" in finding.text
    assert finding.outcome is Outcome.FAIL


@pytest.mark.parametrize("late_ns", [0, 1])
def test_a_stream_that_ends_at_once_is_at_fault(merged, late_ns):
    sent = [each for each in merged.run.packets["a"] if each.kind in ("DATA", "PAD")]
    first = {each.payload: each.time_ns for each in reversed(sent)}
    began_ns = max(first.values()) - MERGING_NS + late_ns
    finding = merged.live_from(0).judge(merged.run.log.end_position, began_ns)
    assert finding.outcome is (Outcome.INCONCLUSIVE if late_ns else Outcome.FAIL)
    if late_ns:
        assert finding.at_fault is AtFault.SCENARIO
        assert finding.text.endswith("999 ms after the subscriber began to merge")


def test_the_archives_own_port_proves_nothing(merged):
    seam = merged.starts[30]
    finding = merged.judge(seam)
    assert finding.outcome is Outcome.FAIL
    assert finding.position == seam + WINDOW
    assert f"position {seam + WINDOW}" in finding.text


def test_within_a_window_of_the_merge_the_replay_may_have_filled_losses_of_the_link(merged):
    seam = merged.starts[30]
    holes = [each for each in merged.starts if seam <= each < seam + WINDOW - MTU]
    assert len(holes) > 5
    assert merged.live_from(0, without=holes).judge(seam).outcome is Outcome.PASS


def test_a_frame_beyond_the_window_that_never_arrived_over_the_link_is_reported(merged):
    seam = merged.starts[30]
    hole = next(each for each in merged.starts if each >= seam + WINDOW)
    finding = merged.live_from(0, without=(hole,)).judge(seam)
    assert finding.outcome is Outcome.FAIL
    assert finding.position == hole


def test_a_merge_within_a_window_of_the_end_is_inconclusive(merged):
    finding = merged.live_from(0).judge(merged.run.log.end_position - WINDOW)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "the replay may have delivered data up to" in finding.text


def test_missing_readers_document_is_inconclusive(merged):
    merged.live_from(0).judge(0)
    merged.run.folder.host("b").subscriber(TRAFFIC).document.unlink()
    evidence = Evidence(merged.run.path)
    (finding,) = merged_into_live(evidence, list(evidence.case.traffic))
    assert finding.outcome is Outcome.INCONCLUSIVE
