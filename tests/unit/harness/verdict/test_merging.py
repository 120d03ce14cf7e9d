"""Merges: a reader that never left its replay is named, and so is what the link did not bring."""

from dataclasses import replace

import pytest

from harness.artifact.application import SubscriberFacts
from harness.scenario.merge import MergeCase
from harness.verdict.evidence import Evidence
from harness.verdict.merging import merged_into_live
from harness.verdict.outcome import Outcome
from tests.unit.harness.verdict.made_run import PORT, TRAFFIC, make_run

LIVE = PORT + 1


class Merged:
    """The made run, read by a late reader, whose live stream came from some position on."""

    def __init__(self, run):
        self.run = run
        merge = MergeCase(after_bytes=1, live="aeron:udp", port=LIVE)
        traffic = run.traffic.model_copy(update={"merges": merge, "ports": (PORT, LIVE)})
        run.case = run.case.model_copy(update={"traffic": (traffic,)})
        self.starts = [int(each) for each in run.log.frames["position"]]

    def live_from(self, position, without=()):
        """Let a copy of what left from there on arrive on the live port."""
        sent = {self.run.frame_bytes(index): each for index, each in enumerate(self.starts)}
        extra = [
            replace(packet, ports=(packet.ports[0], LIVE))
            for packet in self.run.packets["b"]
            if sent.get(packet.payload, -1) >= position and sent[packet.payload] not in without
        ]
        self.run.packets["b"] += extra
        return self

    def judge(self, merged_position):
        path = self.run.write()
        document = self.run.folder.host("b").subscriber(TRAFFIC).document
        facts = SubscriberFacts.read(document)
        replace(facts, merged_position=merged_position).write(document)
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
    assert finding.facts == {"merged_position": seam, "live_bytes": end - seam}


def test_nobody_merges_so_there_is_nothing_to_look_at(tmp_path):
    evidence = Evidence(make_run(tmp_path).write())
    assert merged_into_live(evidence, list(evidence.case.traffic)) == []


def test_a_reader_that_stayed_with_its_replay_fails_it(merged):
    finding = merged.live_from(0).judge(-1)
    assert finding.outcome is Outcome.FAIL
    assert finding.text == "the reader never left its replay"


def test_a_merge_at_the_end_is_none(merged):
    finding = merged.live_from(0).judge(merged.run.log.end_position)
    assert "where the stream had ended" in finding.text
    assert finding.outcome is Outcome.FAIL


def test_the_archives_own_port_proves_nothing(merged):
    finding = merged.judge(merged.starts[30])
    assert finding.outcome is Outcome.FAIL
    assert finding.position == merged.starts[30]
    assert f"the link brought port {LIVE} nothing of position {merged.starts[30]}" in finding.text


def test_a_live_stream_that_began_behind_the_merge_fails_it(merged):
    finding = merged.live_from(merged.starts[31]).judge(merged.starts[30])
    assert finding.position == merged.starts[30]


def test_a_frame_that_the_link_never_brought_is_named(merged):
    hole = merged.starts[50]
    finding = merged.live_from(merged.starts[30], without=(hole,)).judge(merged.starts[30])
    assert finding.outcome is Outcome.FAIL
    assert finding.position == hole


def test_without_the_readers_document_nothing_is_said(merged):
    merged.live_from(0).judge(0)
    merged.run.folder.host("b").subscriber(TRAFFIC).document.unlink()
    evidence = Evidence(merged.run.path)
    (finding,) = merged_into_live(evidence, list(evidence.case.traffic))
    assert finding.outcome is Outcome.INCONCLUSIVE
