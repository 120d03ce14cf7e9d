"""The check of positions: no gap, no overlap, no wrong header, no unjustified PAD."""

import struct
from dataclasses import replace

import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_loss import (
    change,
    joined_at,
    last_pad,
    let_arrive,
    lose,
    never_send,
    send_later,
)
from tests.unit.harness.verdict.synthetic_run import (
    STEP_NS,
    SyntheticRun,
    data_header,
    heartbeat,
    make_run,
)
from windtunnel.harness.artifact.middlebox.decision import DROP
from windtunnel.harness.artifact.middlebox.frame_class import DATA, PAD
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.views.coverage import pad_only_where_lost, positions_covered

AT = 40


def covered(run):
    return positions_covered(Evidence(run.write()), run.traffic)


def padded(run):
    return pad_only_where_lost(Evidence(run.write()), run.traffic)


@pytest.fixture
def reliable(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


@pytest.fixture
def unreliable(tmp_path) -> SyntheticRun:
    return make_run(tmp_path, reliable=False)


def frame_type(frame):
    return struct.unpack_from("<H", frame[1], 6)[0]


def overwrite(run, at, offset, form, value):
    """Overwrite one field of a frame's header."""
    position, header, checksum = run.frames[at]
    changed = bytearray(header)
    struct.pack_into(form, changed, offset, value)
    run.frames[at] = (position, bytes(changed), checksum)
    return position


@pytest.mark.parametrize("sound", ["reliable", "unreliable"])
def test_a_complete_log_is_a_pass(request, sound):
    run = request.getfixturevalue(sound)
    finding = covered(run)
    assert finding.outcome is Outcome.PASS
    assert finding.facts == {
        "frames": len(run.frames),
        "filled_gaps": 0 if run.traffic.reliable else 30,
    }


def test_a_gap_is_reported_by_the_frame_after_it(reliable):
    del reliable.frames[AT]
    finding = covered(reliable)
    assert (finding.outcome, finding.conclusive) == (Outcome.FAIL, True)
    assert finding.position == reliable.frames[AT][0]
    assert "the positions before it are not covered" in finding.text


def test_an_overlap_is_reported(reliable):
    reliable.frames.insert(AT, reliable.frames[AT])
    finding = covered(reliable)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, reliable.frames[AT][0])
    assert "covered more than once" in finding.text


@pytest.mark.parametrize(
    ("offset", "form", "value", "what"),
    [
        (0, "<i", 4096, "wrong length"),
        (4, "<B", 1, "wrong version, session, stream, term or offset"),
        (5, "<B", 0x13, "wrong flags"),
        (6, "<H", 3, "neither DATA nor PAD"),
        (8, "<i", 64, "wrong version, session, stream, term or offset"),
        (12, "<i", 1, "wrong version, session, stream, term or offset"),
        (16, "<i", 1, "wrong version, session, stream, term or offset"),
        (20, "<i", 99, "wrong version, session, stream, term or offset"),
        (24, "<q", 1, "reserved value"),
    ],
)
def test_a_wrong_header_field_is_reported(reliable, offset, form, value, what):
    position = overwrite(reliable, AT, offset, form, value)
    finding = covered(reliable)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, position)
    assert what in finding.text


def test_a_wrong_payload_is_reported(reliable):
    position, header, checksum = reliable.frames[AT]
    reliable.frames[AT] = (position, header, checksum ^ 1)
    finding = covered(reliable)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, position)
    assert "wrong payload" in finding.text


def test_a_pad_in_a_reliable_log_is_reported(reliable):
    at = next(
        at for at, frame in enumerate(reliable.frames) if at > AT and frame_type(frame) == DATA
    )
    position = overwrite(reliable, at, 6, "<H", PAD)
    finding = covered(reliable)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, position)
    assert "PAD that the publisher did not send" in finding.text


def test_data_in_place_of_the_publishers_pad_is_reported(reliable):
    at = next(at for at, frame in enumerate(reliable.frames) if frame_type(frame) == PAD)
    position = overwrite(reliable, at, 6, "<H", DATA)
    finding = covered(reliable)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, position)


def test_a_log_that_continues_beyond_the_end_is_reported(reliable):
    end = reliable.log.end_position
    reliable.frames.append((end, data_header(end, 64, 0xC0, DATA), 0))
    finding = covered(reliable)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, end)


def test_a_log_that_stops_early_fails_but_is_not_conclusive(reliable):
    del reliable.frames[-3:]
    finding = covered(reliable)
    assert (finding.outcome, finding.conclusive) == (Outcome.FAIL, False)
    assert finding.position == reliable.frames[-1][0] + (
        (struct.unpack_from("<i", reliable.frames[-1][1])[0] + 31) & ~31
    )


def test_an_empty_log_fails(reliable):
    reliable.frames.clear()
    finding = covered(reliable)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, 0)


@pytest.mark.parametrize("name", ["frames.bin", "json"])
def test_missing_log_is_inconclusive(reliable, name):
    path = reliable.write()
    (path / f"hosts/b/subscriber-one.{name}").unlink()
    finding = judged(positions_covered, Evidence(path), reliable.traffic)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert f"subscriber-one.{name}: is missing" in finding.text


def test_gaps_filled_where_frames_were_lost_are_a_pass(unreliable):
    finding = padded(unreliable)
    assert finding.outcome is Outcome.PASS
    assert finding.facts == {"filled_gaps": 30, "dropped": 30}


@pytest.mark.parametrize("action", [3, 4])
def test_a_pad_over_a_late_frame_is_justified(unreliable, action):
    row = list(unreliable.decisions[4])
    row[2] = action
    unreliable.decisions[4] = tuple(row)
    assert padded(unreliable).outcome is Outcome.PASS


def test_a_pad_over_a_frame_that_was_only_duplicated_is_reported(unreliable):
    row = list(unreliable.decisions[4])
    row[2] = 2
    unreliable.decisions[4] = tuple(row)
    let_arrive(unreliable, row[12])
    finding = padded(unreliable)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, row[12])


def test_a_pad_over_a_frame_that_was_not_lost_is_reported(unreliable):
    let_arrive(unreliable, unreliable.decisions.pop(9)[12])
    decision = unreliable.decisions.pop(4)
    let_arrive(unreliable, decision[12])
    finding = padded(unreliable)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, decision[12])
    assert (
        f"covers the frame at position {decision[12]}, which was neither lost nor late"
        in finding.text
    )


def test_a_pad_over_the_very_first_frame_is_reported(unreliable):
    unreliable.frames.pop(0)
    unreliable.read_pad(0, 0)
    unreliable.frames.insert(0, unreliable.frames.pop())
    finding = padded(unreliable)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, 0)


def test_a_pad_that_begins_inside_a_frame_is_reported(unreliable):
    start = unreliable.decisions[4][12] + 32
    at = next(at for at, frame in enumerate(unreliable.frames) if frame[0] == start - 32)
    span = unreliable.decisions[4][11]
    unreliable.frames[at] = (start, data_header(start, span - 32, 0xC0, PAD), 0)
    assert (padded(unreliable).outcome, padded(unreliable).position) == (Outcome.FAIL, start)


def test_a_pad_that_covers_the_frame_after_the_lost_one_is_reported(unreliable):
    kinds = unreliable.log.frames["frame_type"]
    lost = {row[12] for row in unreliable.decisions}
    positions = unreliable.log.frames["position"]
    first = next(
        at for at in range(len(kinds) - 1) if positions[at] in lost and kinds[at + 1] == DATA
    )
    at = next(at for at, frame in enumerate(unreliable.frames) if frame[0] == positions[first])
    unreliable.read_pad(first, first + 1)
    unreliable.frames[at : at + 2] = [unreliable.frames.pop()]
    assert covered(unreliable).outcome is Outcome.PASS
    finding = padded(unreliable)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, int(positions[first + 1]))


def test_one_pad_over_two_neighbouring_losses_is_justified(unreliable):
    kinds = unreliable.log.frames["frame_type"]
    lost = {row[12] for row in unreliable.decisions}
    positions = unreliable.log.frames["position"]
    first = next(
        at for at in range(len(kinds) - 1) if positions[at] in lost and kinds[at + 1] == DATA
    )
    at = next(at for at, frame in enumerate(unreliable.frames) if frame[0] == positions[first])
    unreliable.read_pad(first, first + 1)
    unreliable.frames[at : at + 2] = [unreliable.frames.pop()]
    unreliable.decide(first + 1, 1)
    assert padded(unreliable).outcome is Outcome.PASS


def test_a_pad_over_frames_that_an_impairment_lost_is_justified(unreliable):
    unreliable.decisions.clear()
    finding = padded(unreliable)
    assert finding.outcome is Outcome.PASS
    assert finding.facts == {"filled_gaps": 30, "dropped": 0}


def test_a_pad_over_frames_that_an_impairment_delayed_is_justified(unreliable):
    let_arrive(unreliable, unreliable.decisions.pop(4)[12], late_ns=3 * STEP_NS)
    assert padded(unreliable).outcome is Outcome.PASS


def test_a_pad_over_frames_before_a_heartbeat_is_justified(unreliable):
    position = unreliable.decisions.pop(4)[12]
    came = let_arrive(unreliable, position)
    beat = replace(came, time_ns=came.time_ns - 1, payload=heartbeat(position + 32))
    unreliable.packets["b"].append(beat)
    assert padded(unreliable).outcome is Outcome.PASS


def test_a_pad_over_frames_that_were_never_sent_is_not_justified(unreliable):
    position = unreliable.decisions.pop(4)[12]
    never_send(unreliable, position)
    finding = padded(unreliable)
    assert finding.outcome is Outcome.FAIL
    assert finding.position == position


def test_a_pad_over_frames_that_were_sent_late_is_not_justified(unreliable):
    position = unreliable.decisions.pop(4)[12]
    let_arrive(unreliable, position, late_ns=3 * STEP_NS)
    send_later(unreliable, position, 3 * STEP_NS)
    assert padded(unreliable).outcome is Outcome.FAIL


def test_a_lost_pad_is_filled_by_an_equal_one(tmp_path):
    run = make_run(tmp_path, reliable=False, drops=False)
    lose(run, last_pad(run))
    run.decide(last_pad(run), DROP)
    finding = padded(run)
    assert finding.outcome is Outcome.PASS
    assert finding.facts == {"filled_gaps": 1, "dropped": 1}


def test_drops_without_a_single_filled_gap_are_a_failure(unreliable):
    lost = {row[12] for row in unreliable.decisions}
    unreliable.frames = [frame for frame in unreliable.frames if frame[0] not in lost]
    finding = padded(unreliable)
    assert finding.outcome is Outcome.FAIL
    assert "30 frames were dropped, but no gap was filled" in finding.text


@pytest.mark.parametrize(
    "name", ["decisions.bin", "hosts/b/subscriber-one.frames.bin", "captures/b.pcap"]
)
def test_missing_evidence_is_inconclusive(unreliable, name):
    path = unreliable.write()
    (path / name).unlink()
    assert (
        judged(pad_only_where_lost, Evidence(path), unreliable.traffic).outcome
        is Outcome.INCONCLUSIVE
    )


def test_a_log_without_frames_is_inconclusive(unreliable):
    unreliable.frames.clear()
    assert padded(unreliable).outcome is Outcome.INCONCLUSIVE


def test_a_subscriber_connected_first_may_not_join_late(unreliable):
    finding = positions_covered(joined_at(unreliable, 20), unreliable.traffic)
    assert (finding.outcome, finding.conclusive) == (Outcome.FAIL, False)
    assert "connected before the publisher started" in finding.text


def test_a_subscriber_of_the_next_image_may_join_late(unreliable):
    evidence = joined_at(unreliable, 20)
    change(unreliable, rejoins=True)
    assert positions_covered(evidence, unreliable.traffic).outcome is Outcome.PASS
