"""Position counters increase, agree with the capture, and end at the stream's end."""

from dataclasses import replace

import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_run import (
    COUNTERS,
    STEP_NS,
    TERM_LENGTH,
    SyntheticRun,
    data_header,
    heartbeat,
    make_run,
)
from windtunnel.harness.artifact.middlebox import frame_class
from windtunnel.harness.dissect.frames.layout import FLAG_UNFRAGMENTED
from windtunnel.harness.verdict.checks.counters.positions import (
    invalid_packets_zero,
    rcv_hwm_from_wire,
    rcv_pos_monotonic,
    rcv_pos_reaches_end,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

POSITIONS = ["snd-pos", "rcv-hwm", "rcv-pos", "sub-pos"]
STREAM_CHECKS = [rcv_pos_reaches_end, rcv_pos_monotonic, rcv_hwm_from_wire]


@pytest.fixture(params=[True, False], ids=["reliable", "unreliable"])
def run(tmp_path, request) -> SyntheticRun:
    return make_run(tmp_path, reliable=request.param)


def finding_of(check, run):
    return judged(check, Evidence(run.write()), run.traffic)


def host_of(name):
    return next(host for host, names in COUNTERS.items() if name in names)


def samples_of(run, name):
    """Return the indices of a counter's samples."""
    return [at for at, each in enumerate(run.samples[host_of(name)]) if each[1] == name]


def change(run, name, at, value=None, later_ns=0):
    """Change the value or the time of a counter's sample number `at`."""
    rows = run.samples[host_of(name)]
    index = samples_of(run, name)[at]
    time_ns, _, old = rows[index]
    rows[index] = (time_ns + later_ns, name, old if value is None else value)
    return rows[index][2]


@pytest.mark.parametrize("check", STREAM_CHECKS)
def test_correct_counters_are_a_pass(run, check):
    assert finding_of(check, run).outcome is Outcome.PASS


@pytest.mark.parametrize("name", POSITIONS)
@pytest.mark.parametrize("deviation", [-32, 32])
def test_a_position_that_does_not_end_at_the_end_is_reported(run, name, deviation):
    value = run.log.end_position + deviation
    change(run, name, -1, value)
    finding = finding_of(rcv_pos_reaches_end, run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, value)
    assert f"{name} on {host_of(name)} ended at {value}" in finding.text


@pytest.mark.parametrize(
    ("ahead", "value", "outcome"),
    [
        (TERM_LENGTH, 0, Outcome.PASS),
        (TERM_LENGTH, -32, Outcome.FAIL),
        (64, 0, Outcome.FAIL),
        (64, 64, Outcome.PASS),
    ],
)
def test_rcv_hwm_need_not_reach_what_is_too_far_ahead(run, ahead, value, outcome):
    """Nobody reads, and a sender of a group goes on for others."""
    last = next(each for each in reversed(run.packets["b"]) if each.kind == "HEARTBEAT")
    last.payload = heartbeat(run.log.end_position + ahead)
    change(run, "rcv-hwm", -1, run.log.end_position + value)
    assert finding_of(rcv_hwm_from_wire, run).outcome is outcome


def forge(run, begins_bytes_before_end, ends_bytes_after_end):
    """Let a forged frame arrive last, at a position near the end."""
    last = [each for each in run.packets["b"] if each.kind == "DATA"][-1]
    length = begins_bytes_before_end + ends_bytes_after_end
    begins = run.log.end_position - begins_bytes_before_end
    header = data_header(begins, length, FLAG_UNFRAGMENTED, frame_class.DATA)
    payload = header + bytes(length - len(header))
    run.packets["b"].append(replace(last, time_ns=last.time_ns + 1, payload=payload))


@pytest.mark.parametrize("begins_bytes_before_end", [32, 2048])
def test_rcv_hwm_may_end_where_a_frame_forged_across_the_end_did(run, begins_bytes_before_end):
    """A receiver advances rcv-hwm even if the position is occupied. Source: Aeron 1.53."""
    forge(run, begins_bytes_before_end, 96)
    assert finding_of(rcv_pos_reaches_end, run).outcome is Outcome.PASS
    change(run, "rcv-hwm", -1, run.log.end_position + 96)
    assert finding_of(rcv_pos_reaches_end, run).outcome is Outcome.PASS


@pytest.mark.parametrize("name", ["snd-pos", "rcv-pos", "sub-pos"])
def test_a_forged_frame_moves_the_end_of_no_other_position(run, name):
    forge(run, 32, 96)
    change(run, name, -1, run.log.end_position + 96)
    assert finding_of(rcv_pos_reaches_end, run).outcome is Outcome.FAIL


@pytest.mark.parametrize(("begins", "ends"), [(0, 96), (-96, 192), (64, 0), (32, 64), (32, 128)])
def test_rcv_hwm_beyond_the_end_is_reported_unless_a_forged_frame_from_inside_ended_there(
    run, begins, ends
):
    forge(run, begins, ends)
    value = run.log.end_position + 96
    change(run, "rcv-hwm", -1, value)
    finding = finding_of(rcv_pos_reaches_end, run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, value)


def test_rcv_hwm_below_the_end_is_reported_though_a_forged_frame_ended_there(run):
    forge(run, 128, -64)
    value = run.log.end_position - 64
    change(run, "rcv-hwm", -1, value)
    finding = finding_of(rcv_pos_reaches_end, run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, value)


@pytest.mark.parametrize("check", STREAM_CHECKS)
@pytest.mark.parametrize("name", ["rcv-hwm", "rcv-pos"])
def test_missing_samples_are_inconclusive(run, check, name):
    run.samples["b"] = [each for each in run.samples["b"] if each[1] != name]
    finding = finding_of(check, run)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert f"no sample of {name}" in finding.text


@pytest.mark.parametrize("check", STREAM_CHECKS)
@pytest.mark.parametrize("name", ["counters.bin", "counters.json"])
def test_missing_counters_are_inconclusive(run, check, name):
    path = run.write()
    (path / "hosts/b" / name).unlink()
    finding = judged(check, Evidence(path), run.traffic)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert f"hosts/b/{name}: is missing" in finding.text


@pytest.mark.parametrize("name", ["rcv-hwm", "rcv-pos"])
def test_a_counter_that_falls_is_reported(run, name):
    before = run.samples["b"][samples_of(run, name)[49]][2]
    change(run, name, 50, before - 64)
    finding = finding_of(rcv_pos_monotonic, run)
    assert finding.outcome is Outcome.FAIL
    assert f"{name} decreases at sample 50: {before - 64}" in finding.text


@pytest.mark.parametrize("name", ["rcv-hwm", "rcv-pos"])
def test_a_counter_that_is_not_aligned_is_reported(run, name):
    value = run.samples["b"][samples_of(run, name)[50]][2] - 8
    change(run, name, 50, value)
    finding = finding_of(rcv_pos_monotonic, run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, value)
    assert "is not a multiple of 32" in finding.text


def test_rcv_pos_ahead_of_all_that_arrived_is_reported(run):
    next_value = run.samples["b"][samples_of(run, "rcv-pos")[52]][2]
    change(run, "rcv-pos", 50, next_value)
    change(run, "rcv-pos", 51, next_value)
    finding = finding_of(rcv_pos_monotonic, run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, next_value)
    assert f"rcv-pos was {next_value} when" in finding.text


def test_rcv_pos_that_passes_over_a_gap_of_a_reliable_stream_is_reported(tmp_path):
    run = make_run(tmp_path)
    hole = run.decisions[3][12]
    hwm = next(row for row in run.samples["b"] if row[1] == "rcv-hwm" and row[2] > hole)
    rows = run.samples["b"]
    at = max(i for i, each in enumerate(rows) if each[1] == "rcv-pos" and each[2] <= hole)
    rows.insert(at + 1, (hwm[0], "rcv-pos", hwm[2]))
    finding = finding_of(rcv_pos_monotonic, run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, hwm[2])
    assert f"when the data was contiguous only up to {hole}" in finding.text


def test_rcv_pos_ahead_of_rcv_hwm_is_reported(run):
    rows = run.samples["b"]
    hwm = samples_of(run, "rcv-hwm")
    stuck = rows[hwm[59]][2]
    for index in hwm[60:70]:
        rows[index] = (rows[index][0], "rcv-hwm", stuck)
    finding = finding_of(rcv_pos_monotonic, run)
    assert finding.outcome is Outcome.FAIL
    assert "when rcv-hwm had advanced only up to" in finding.text


def test_a_value_that_is_read_late_in_a_pass_is_tolerated(run):
    """A pass is timestamped at its start; a frame may arrive before the counter is read."""
    for name in ("rcv-hwm", "rcv-pos"):
        change(run, name, 50, later_ns=-STEP_NS // 2)
    assert finding_of(rcv_pos_monotonic, run).outcome is Outcome.PASS
    assert finding_of(rcv_hwm_from_wire, run).outcome is Outcome.PASS


def test_rcv_hwm_ahead_of_the_capture_is_reported(run):
    later = run.samples["b"][samples_of(run, "rcv-hwm")[53]][2]
    for at in (50, 51, 52):
        change(run, "rcv-hwm", at, later)
    finding = finding_of(rcv_hwm_from_wire, run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, later)
    assert f"rcv-hwm was {later} when frames had arrived only up to" in finding.text


@pytest.mark.parametrize(
    ("recorded", "last", "outcome"),
    [
        ("b", "archive", Outcome.PASS),
        ("b", "tap", Outcome.FAIL),
        ("", "archive", Outcome.FAIL),
    ],
)
def test_the_subscription_of_a_killed_archive_may_end_early(
    run, monkeypatch, recorded, last, outcome
):
    monkeypatch.setitem(COUNTERS, "b", {**COUNTERS["b"], "tap": (64, 4), "archive": (65, 4)})
    read = [(at_ns, value) for at_ns, name, value in run.samples["b"] if name == "sub-pos"]
    for name in ("tap", "archive"):
        own = read[: len(read) // 2] if name == last else read
        run.samples["b"] += [(at_ns, name, value) for at_ns, value in own]
        run.values[name] = own[-1][1]
    traffic = run.traffic.model_copy(update={"recorded": recorded})
    finding = judged(rcv_pos_reaches_end, Evidence(run.write()), traffic)
    assert finding.outcome is outcome


def test_rcv_hwm_that_ends_below_the_capture_is_reported(run):
    value = run.log.end_position - 32
    change(run, "rcv-hwm", -1, value)
    finding = finding_of(rcv_hwm_from_wire, run)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, value)
    assert f"expected the highest arrived position {run.log.end_position}" in finding.text


def test_a_heartbeat_alone_can_raise_the_highest_captured_position(tmp_path):
    run = make_run(tmp_path, reliable=False)
    last = run.log.frames["position"][-1]
    run.packets["b"] = [
        packet
        for packet in run.packets["b"]
        if packet.kind != "DATA" or int.from_bytes(packet.payload[8:12], "little") != last % 65536
    ]
    change(run, "rcv-hwm", -1, later_ns=STEP_NS)
    assert finding_of(rcv_hwm_from_wire, run).outcome is Outcome.PASS


@pytest.mark.parametrize("host", ["a", "b"])
def test_an_invalid_packet_is_reported(run, host):
    run.values[f"{host}/14"] = 1
    findings = invalid_packets_zero(Evidence(run.write()), list(run.case.traffic))
    outcomes = {finding.about: finding.outcome for finding in findings}
    assert outcomes == {"a": Outcome.PASS, "b": Outcome.PASS} | {host: Outcome.FAIL}


def test_without_counters_the_validity_of_packets_is_unknown(run):
    path = run.write()
    (path / "hosts/a/counters.json").unlink()
    findings = invalid_packets_zero(Evidence(path), list(run.case.traffic))
    assert [finding.outcome for finding in findings] == [Outcome.INCONCLUSIVE, Outcome.PASS]


@pytest.mark.parametrize(
    ("kind", "more", "text"),
    [
        ("SM", b"\0" * 32, "has 68 bytes, expected 36, the length of its SM"),
        ("SETUP", b"\0", "has 41 bytes, expected 40, the length of its SETUP"),
        ("DATA", b"\0" * 32, ", and a malformed frame"),
    ],
)
def test_a_datagram_with_more_than_whole_frames_is_reported(run, kind, more, text):
    sender = "b" if kind == "SM" else "a"
    sent = [each for each in run.packets[sender] if each.kind == kind and each.source == sender]
    sent[-1].payload += more
    finding = invalid_packets_zero(Evidence(run.write()), list(run.case.traffic))[
        "ab".index(sender)
    ]
    assert finding.outcome is Outcome.FAIL
    assert finding.text.startswith("1 datagrams were sent that are not made of whole frames; ")
    assert text in finding.text


def test_a_datagram_that_was_damaged_in_transit_is_not_the_drivers_fault(run):
    arrived = [each for each in run.packets["b"] if each.source == "a"]
    arrived[-1].payload += b"\0" * 32
    findings = invalid_packets_zero(Evidence(run.write()), list(run.case.traffic))
    assert [each.outcome for each in findings] == [Outcome.PASS] * 2
