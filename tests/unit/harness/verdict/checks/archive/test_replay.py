"""Replays that end early: conclusive if the archive ran on and the receiver acknowledged."""

from dataclasses import replace

import pytest

from tests.unit.harness.verdict.synthetic_recording import descriptor
from tests.unit.harness.verdict.synthetic_run import (
    START_NS,
    STREAM_ID,
    TERM_LENGTH,
    WINDOW,
    heartbeat,
    make_run,
)
from windtunnel.driver.archive.storage.catalog_writer import CatalogWriter
from windtunnel.harness.artifact.run.manifest import ProcessExit
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.verdict.checks.archive.replay import ACKNOWLEDGED_NS, was_truncated
from windtunnel.harness.verdict.checks.delivery.delivery import delivered_once
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.views.coverage import positions_covered

RECORDED_STREAM = STREAM_ID + 1000
PAUSE = EventCase(
    id="rest", host="a", process="archive", trigger="delivered", at=1, action="pause", lasts_ns=1
)


class TruncatedReplay:
    """The synthetic run as a replay by host a's archive, ended three frames early."""

    def __init__(self, run):
        self.run = run
        source = run.traffic.model_copy(update={"id": "source", "stream_id": RECORDED_STREAM})
        traffic = run.traffic.model_copy(update={"replays": "source"})
        run.case = run.case.model_copy(update={"traffic": (traffic, source)})
        run.manifest.processes.append(ProcessExit("a/archive", "archive", 0, True, "", ""))
        self.early = int(run.log.frames["position"][-3])
        self.stops = [run.log.end_position]
        "Where the recordings of the stream stop."
        run.frames = [each for each in run.frames if each[0] < self.early]
        run.messages = [each for each in run.messages if each[0] <= self.early]
        behind = {run.frame_bytes(at) for at in range(len(run.log.frames))[-3:]}
        self._change(lambda sent: None if sent in behind else sent)
        self.end = heartbeat(run.log.end_position, 0xE0)
        self.set_end(heartbeat(self.early, 0xE0))

    def set_end(self, end):
        """Set the EOS flag on another heartbeat or on no heartbeat."""
        self._change(lambda sent: end if sent == self.end else sent)
        self.end = end

    def _change(self, change):
        for host, packets in self.run.packets.items():
            changed = [(each, change(each.payload)) for each in packets]
            self.run.packets[host] = [
                replace(each, payload=payload) for each, payload in changed if payload is not None
            ]

    def slow(self, factor):
        """Extend the duration of the run."""
        for host, packets in self.run.packets.items():
            self.run.packets[host] = [
                replace(each, time_ns=START_NS + int((each.time_ns - START_NS) * factor))
                for each in packets
            ]

    def write(self):
        path = self.run.write()
        folder = self.run.folder.host("a").archive
        folder.mkdir(parents=True)
        with CatalogWriter.create(folder) as catalog:
            for number, stop in enumerate(self.stops):
                catalog.add(descriptor(number, 0, stop, stream_id=RECORDED_STREAM))
        return Evidence(path)

    @property
    def is_found(self):
        return was_truncated(self.write(), self.run.traffic)


@pytest.fixture
def cut(tmp_path):
    return TruncatedReplay(make_run(tmp_path))


@pytest.mark.parametrize("check", [delivered_once, positions_covered])
def test_data_missing_from_a_replay_that_its_archive_ended_fails_conclusively(cut, check):
    finding = check(cut.write(), cut.run.traffic)
    assert (finding.outcome, finding.conclusive) == (Outcome.FAIL, True), finding.text


@pytest.mark.parametrize("check", [delivered_once, positions_covered])
def test_the_rest_of_a_stream_that_is_not_a_replay_may_arrive_later(cut, check):
    (_, source) = cut.run.case.traffic
    traffic = cut.run.traffic.model_copy(update={"replays": ""})
    cut.run.case = cut.run.case.model_copy(update={"traffic": (traffic, source)})
    finding = check(cut.write(), traffic)
    assert (finding.outcome, finding.conclusive) == (Outcome.FAIL, False), finding.text


def test_the_synthetic_replay_was_cut_short(cut):
    assert cut.is_found


def test_a_replay_that_ends_with_its_recording_was_not_cut_short(cut):
    cut.stops = [cut.early]
    assert not cut.is_found


@pytest.mark.parametrize("count", [0, 2])
def test_no_or_several_recordings_are_inconclusive(cut, count):
    cut.stops *= count
    assert not cut.is_found


def test_a_revoked_replay_was_not_cut_short(cut):
    cut.set_end(heartbeat(cut.early, 0xF0))
    assert not cut.is_found


def test_a_replay_without_an_eos_flag_was_not_cut_short(cut):
    cut.set_end(None)
    assert not cut.is_found


@pytest.mark.parametrize(("exit_code", "asked"), [(124, True), (0, False), (None, False)])
def test_an_archive_that_exited_by_itself_excuses_it(cut, exit_code, asked):
    archive = cut.run.manifest.processes.pop()
    cut.run.manifest.processes.append(replace(archive, exit_code=exit_code, asked=asked))
    assert not cut.is_found


def test_an_archive_that_is_not_in_the_manifest_excuses_it(cut):
    cut.run.manifest.processes.pop()
    assert not cut.is_found


def test_a_host_event_excuses_it(cut):
    cut.run.case = cut.run.case.model_copy(update={"events": (PAUSE,)})
    assert not cut.is_found


@pytest.mark.parametrize(("slower", "is_found"), [(0.9, True), (1.1, False)])
def test_a_replay_may_have_been_given_up_where_no_status_message_was_needed(cut, slower, is_found):
    """The replay is so slow that its last second has less than a window and a term."""
    took_ns = max(each.time_ns for each in cut.run.packets["a"]) - START_NS
    needless_ns = took_ns * (WINDOW + TERM_LENGTH) / cut.early
    cut.slow(slower * ACKNOWLEDGED_NS / needless_ns)
    assert cut.is_found == is_found
