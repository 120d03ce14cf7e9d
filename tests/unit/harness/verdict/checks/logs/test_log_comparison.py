"""Log comparison: the first differing frame is reported with both headers."""

import numpy as np
import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_loss import change, joined_at
from tests.unit.harness.verdict.synthetic_run import TERM_LENGTH, SyntheticRun, make_run
from windtunnel.harness.artifact.host.log_index import LogFacts, write_log_index
from windtunnel.harness.artifact.middlebox.frame_class import DATA
from windtunnel.harness.verdict.checks.logs.log_comparison import image_log_equals_publication
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def finding_of(run):
    return judged(image_log_equals_publication, Evidence(run.write()), run.traffic)


def late_frame(run) -> int:
    """Return the position of a DATA frame within the last term."""
    frames = run.log.frames
    late = frames[(frames["position"] > run.log.end_position - TERM_LENGTH // 2)]
    return int(late["position"][late["frame_length"] > 64][0])


def test_equal_logs_are_a_pass_over_the_length_of_a_term(run):
    finding = finding_of(run)
    assert finding.outcome is Outcome.PASS
    assert finding.facts["to"] == run.log.end_position
    low = run.log.end_position - TERM_LENGTH
    assert low <= finding.facts["from"] < low + 1408 * 2
    assert "except for 0 filled gaps" in finding.text


@pytest.mark.parametrize("byte", [5, 24, 32, 60])
def test_the_first_frame_with_another_byte_is_reported_with_both_headers(run, byte):
    position = late_frame(run)
    run.logs["b"][run.in_log(position) + byte] ^= 4
    finding = finding_of(run)
    assert (finding.outcome, finding.conclusive, finding.position) == (Outcome.FAIL, True, position)
    assert f"byte {byte} of the frame at position {position} differs" in finding.text
    assert finding.text.count("DATA of") == 2
    assert "flags 0x" in finding.text
    assert finding.evidence == (
        "hosts/a/logs/publications-5.logbuffer",
        "hosts/b/logs/images-6.logbuffer",
    )


def test_an_image_that_ends_before_the_publication_is_reported(run):
    position = late_frame(run)
    run.logs["b"][run.in_log(position) :][:4] = 0
    finding = finding_of(run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, position)
    assert (
        f"the image's log ends at position {position}, expected {run.log.end_position}"
        in finding.text
    )


def test_filled_gaps_of_an_unreliable_stream_are_excepted_and_counted(tmp_path):
    run = make_run(tmp_path, reliable=False)
    finding = finding_of(run)
    assert finding.outcome is Outcome.PASS
    assert finding.facts["filled_gaps"] > 3


def test_a_filled_gap_in_a_reliable_stream_is_a_failure_that_is_conclusive(tmp_path):
    run = make_run(tmp_path, reliable=False)
    traffic = run.traffic.model_copy(update={"reliable": True})
    finding = image_log_equals_publication(Evidence(run.write()), traffic)
    assert (finding.outcome, finding.conclusive) == (Outcome.FAIL, True)
    assert "a gap was filled at position" in finding.text
    assert "PAD of" in finding.text


def test_a_fill_that_covers_a_part_of_a_frame_is_a_difference(tmp_path):
    run = make_run(tmp_path, reliable=False)
    pads = [position for position, header, _ in run.frames if header[6] == 0]
    at = run.in_log(pads[-2])
    length = int(run.logs["b"][at : at + 4].view(np.int32)[0])
    run.logs["b"][at : at + 4].view(np.int32)[0] = length + 32
    finding = finding_of(run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, pads[-2])


def test_logs_of_different_terms_are_a_failure(run):
    run.logs["b"][3 * TERM_LENGTH + 264] ^= 1
    finding = finding_of(run)
    assert finding.outcome is Outcome.FAIL
    assert "initial_term_id is -3 in the publication's log, but -4 in the image's" in finding.text


def test_a_publication_with_a_gap_before_its_tail_fails(run):
    position = late_frame(run)
    run.logs["a"][run.in_log(position) :][:4] = 0
    assert "before its tail at" in finding_of(run).text


@pytest.mark.parametrize(
    "name", ["hosts/a/logs.json", "hosts/b/logs/images-6.logbuffer", "captures/a.pcap"]
)
def test_missing_evidence_is_inconclusive(run, name):
    path = run.write()
    (path / name).unlink()
    finding = judged(image_log_equals_publication, Evidence(path), run.traffic)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert name in finding.text


def test_a_log_that_was_left_out_is_reported_with_the_reason(run):
    path = run.write()
    held = [LogFacts("images", 6, 1 << 30, "too long")]
    write_log_index(run.folder.host("b").log_index, held)
    finding = judged(image_log_equals_publication, Evidence(path), run.traffic)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "images/6 was not saved: too long" in finding.text


def test_a_log_of_another_session_is_not_used(run):
    run.logs["b"][3 * TERM_LENGTH + 320 + 12] ^= 1
    assert finding_of(run).outcome is Outcome.INCONCLUSIVE


def test_a_file_that_is_not_a_log_is_a_harness_defect(run):
    run.logs["b"] = run.logs["b"][:-1]
    assert finding_of(run).outcome is Outcome.HARNESS


def first_in_reach(run) -> int:
    """Return the first DATA frame in the last term length that follows another DATA frame."""
    rows = run.log.frames
    reached = np.flatnonzero(rows["position"] >= run.log.end_position - TERM_LENGTH)
    first = int(reached[0])
    assert (rows["frame_type"][first - 1 : first + 1] == DATA).all()
    return first


def fill_from_before_reach(run) -> tuple[int, int]:
    """Fill a gap over the first compared frame and its predecessor, in both logs."""
    frame = first_in_reach(run)
    start, end = int(run.log.frames["position"][frame - 1]), run.frame_end(frame)
    at = next(at for at, each in enumerate(run.frames) if each[0] == start)
    run.read_pad(frame - 1, frame)
    run.frames[at : at + 2] = [run.frames.pop()]
    run.lay_out_logs()
    return start, end


def test_the_comparison_starts_after_a_fill_that_began_before_its_range(tmp_path):
    run = make_run(tmp_path, reliable=False)
    _, end = fill_from_before_reach(run)
    finding = finding_of(run)
    assert finding.outcome is Outcome.PASS
    assert finding.facts["from"] == end


def test_a_first_frame_within_reach_that_no_fill_covers_must_be_there(tmp_path):
    run = make_run(tmp_path, reliable=False)
    position = int(run.log.frames["position"][first_in_reach(run)])
    run.logs["b"][run.in_log(position) :][:4] = 0
    finding = finding_of(run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, position)


def test_a_fill_from_before_reach_excuses_no_reliable_stream(tmp_path):
    run = make_run(tmp_path, reliable=False)
    fill_from_before_reach(run)
    traffic = run.traffic.model_copy(update={"reliable": True})
    finding = image_log_equals_publication(Evidence(run.write()), traffic)
    assert finding.outcome is Outcome.FAIL


def test_missing_records_of_the_reader_are_inconclusive(tmp_path):
    run = make_run(tmp_path, reliable=False)
    path = run.write()
    run.folder.host("b").subscriber(run.traffic.id).frames.unlink()
    finding = judged(image_log_equals_publication, Evidence(path), run.traffic)
    assert finding.outcome is Outcome.INCONCLUSIVE


def test_a_subscriber_connected_first_has_the_log_from_the_start(tmp_path):
    run = make_run(tmp_path, reliable=False)
    late = int(np.searchsorted(run.log.message_ends, run.log.end_position - TERM_LENGTH // 2))
    evidence = joined_at(run, late)
    assert image_log_equals_publication(evidence, run.traffic).outcome is Outcome.FAIL
    change(run, rejoins=True)
    assert image_log_equals_publication(evidence, run.traffic).outcome is Outcome.PASS
