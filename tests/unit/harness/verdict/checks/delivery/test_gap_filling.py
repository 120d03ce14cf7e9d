"""Filled gaps: their counter, and the log bytes after their headers."""

import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_loss import change, last_pad, let_arrive, lose
from tests.unit.harness.verdict.synthetic_run import STEP_NS, TERM_LENGTH, SyntheticRun, make_run
from windtunnel.harness.artifact.middlebox.decision import DROP
from windtunnel.harness.scenario.resolved.case import HostCase, LinkCase
from windtunnel.harness.verdict.checks.delivery.gap_filling import (
    gap_fills_counted,
    gap_fills_cover_nothing,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

FILLS = "b/23"


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path, reliable=False)


def counted(run):
    (finding,) = gap_fills_counted(Evidence(run.write()), [run.traffic])
    return finding


def empty(run):
    return judged(gap_fills_cover_nothing, Evidence(run.write()), run.traffic)


def last_fill(run) -> int:
    """Return the position of the last filled gap."""
    written = {int(row["position"]) for row in run.log.frames if int(row["frame_type"]) == 0}
    return max(
        position for position, header, _ in run.frames
        if header[6] == 0 and position not in written
    )  # fmt: skip


def test_the_right_number_of_filled_gaps_is_a_pass(run):
    finding = counted(run)
    assert finding.outcome is Outcome.PASS
    assert finding.facts["seen"] == run.values[FILLS] > 5


@pytest.mark.parametrize("more", [-1, 1])
def test_another_count_is_reported(run, more):
    run.values[FILLS] += more
    finding = counted(run)
    assert finding.outcome is Outcome.FAIL
    assert finding.facts == {"counted": run.values[FILLS], "seen": run.values[FILLS] - more}


@pytest.mark.parametrize(("more", "outcome"), [(0, Outcome.FAIL), (1, Outcome.PASS)])
def test_the_fill_of_a_lost_pad_is_counted_although_it_looks_like_the_pad(run, more, outcome):
    lose(run, last_pad(run))
    run.decide(last_pad(run), DROP)
    run.values[FILLS] += more
    assert counted(run).outcome is outcome


@pytest.mark.parametrize("more", [0, 1])
def test_a_late_pad_may_have_been_filled_or_not(run, more):
    index = last_pad(run)
    lose(run, index)
    let_arrive(run, int(run.log.frames["position"][index]), late_ns=3 * STEP_NS)
    run.values[FILLS] += more
    assert counted(run).outcome is Outcome.PASS


@pytest.mark.parametrize("more", [0, 1])
def test_gaps_of_earlier_sessions_are_unknown(run, more):
    change(run, rejoins=True)
    lose(run, last_pad(run))
    run.values[FILLS] += more
    assert counted(run).outcome is Outcome.PASS


def test_the_second_reader_of_a_stream_is_checked_as_well(run):
    far = HostCase(name="c", address="10.64.2.10")
    links = tuple(LinkCase(between=("a", each)) for each in ("b", "c"))
    run.case = run.case.model_copy(update={"hosts": (*run.case.hosts, far), "links": links})
    change(run, to_host="c", to_hosts=("c", "b"))
    readers = [each for each in run.traffic.flows if each.to_host == "b"]
    (finding,) = gap_fills_counted(Evidence(run.write()), readers)
    assert (finding.outcome, finding.about) == (Outcome.PASS, "b")
    assert finding.facts["seen"] == run.values[FILLS] > 5


def test_one_reader_of_several_publishers_is_checked_once(run):
    change(run, from_hosts=("a", "b"))
    (finding,) = gap_fills_counted(Evidence(run.write()), list(run.traffic.flows))
    assert finding.facts["seen"] == run.values[FILLS]


def test_a_stream_that_was_not_read_to_its_end_may_have_more_gaps(run):
    path = run.write()
    document = run.folder.host("b").subscriber(run.traffic.id).document
    end = str(run.log.end_position)
    document.write_text(document.read_text().replace(end, str(run.log.end_position - 32)))
    run.values[FILLS] += 1
    run._write_counters("b")
    (finding,) = gap_fills_counted(Evidence(path), [run.traffic])
    assert finding.outcome is Outcome.PASS


def test_fills_of_a_valid_log_contain_no_frame_bytes(run):
    finding = empty(run)
    assert finding.outcome is Outcome.PASS
    assert finding.facts["filled_gaps"] > 1


def test_a_frame_after_its_padding_header_is_reported(run):
    position = last_fill(run)
    assert position > run.log.end_position - TERM_LENGTH
    run.logs["b"][run.in_log(position) + 40] = 7
    finding = empty(run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, position)
    assert "byte 40" in finding.text


def test_another_frame_that_the_padding_covers_may_have_come_later(run):
    position = last_fill(run)
    rows = run.log.frames
    length = int(rows["frame_length"][rows["position"] == position][0])
    behind = position + (length + 31 & ~31)
    run.logs["b"][run.in_log(behind) + 40] ^= 0xFF
    assert empty(run).outcome is Outcome.PASS


@pytest.mark.parametrize("check", [counted, empty])
def test_missing_records_of_the_reader_are_inconclusive(run, check):
    path = run.write()
    run.folder.host("b").subscriber(run.traffic.id).frames.unlink()
    run.write = lambda: path
    assert check(run).outcome is Outcome.INCONCLUSIVE
