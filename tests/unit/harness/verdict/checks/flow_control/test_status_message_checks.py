"""Status messages: missing, too frequent and too far ahead ones are reported."""

import copy
import struct

import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_run import (
    COUNTERS,
    INITIAL_TERM_ID,
    MTU,
    STEP_NS,
    TERM_LENGTH,
    WINDOW,
    SyntheticRun,
    make_run,
    place,
)
from windtunnel.harness.verdict.checks.flow_control.status_message_checks import (
    status_messages_backed,
    status_messages_on_time,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

FAIL, PASS = Outcome.FAIL, Outcome.PASS


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def on_time(run):
    return status_messages_on_time(Evidence(run.write()), run.traffic)


def backed(run):
    return status_messages_backed(Evidence(run.write()), run.traffic)


def messages(run):
    """Return the status messages sent by the subscriber's host."""
    return [each for each in run.packets["b"] if each.kind == "SM"]


def position(packet) -> int:
    term_id, offset = struct.unpack_from("<ii", packet.payload, 16)
    return (term_id - INITIAL_TERM_ID) * TERM_LENGTH + offset


def set_position(packet, position: int, window: int = WINDOW) -> None:
    packet.payload = (
        packet.payload[:16] + struct.pack("<iii", *place(position), window) + packet.payload[28:]
    )


def wait(run, after_ns: int, by_ns: int) -> None:
    """Delay all packets and samples after a time."""
    for host in ("a", "b"):
        for packet in run.packets[host]:
            packet.time_ns += by_ns if packet.time_ns > after_ns else 0
        run.samples[host] = [
            (time_ns + (by_ns if time_ns > after_ns else 0), name, value)
            for time_ns, name, value in run.samples[host]
        ]
    run.now_ns += by_ns


def test_status_messages_in_time_are_a_pass(run):
    finding = on_time(run)
    assert finding.outcome is PASS
    assert f"{len(messages(run))} status messages" in finding.text
    assert finding.evidence == ("captures/b.pcap", "hosts/b/counters.bin")


@pytest.mark.parametrize(("pause_ms", "outcome"), [(280, PASS), (310, FAIL)])
def test_silence_is_reported(run, pause_ms, outcome):
    last = messages(run)[5]
    wait(run, last.time_ns, pause_ms * STEP_NS)
    finding = on_time(run)
    assert finding.outcome is outcome
    if outcome is FAIL:
        assert "expected one every 200 ms" in finding.text
        after_ms = (last.time_ns - messages(run)[0].time_ns) // STEP_NS
        assert f"beginning {after_ms} ms after the first one" in finding.text


def test_a_subscriber_that_never_had_an_image_is_not_judged(run):
    run.packets["b"] = [each for each in run.packets["b"] if each.kind != "SM"]
    assert on_time(run).outcome is FAIL
    run.samples["b"] = [each for each in run.samples["b"] if each[1] != "sub-pos"]
    assert judged(status_messages_on_time, Evidence(run.write()), run.traffic).outcome is (
        Outcome.INCONCLUSIVE
    )


def test_silence_after_the_end_was_signalled_is_no_fault(run):
    end = max(each.time_ns for each in run.packets["b"] if each.kind == "HEARTBEAT")
    wait(run, end, 5000 * STEP_NS)
    assert on_time(run).outcome is PASS


def test_silence_up_to_the_end_is_reported(run):
    beats = [each for each in run.packets["b"] if each.kind == "HEARTBEAT"]
    wait(run, beats[1].time_ns - 1, 400 * STEP_NS)
    assert "no status message for 4" in on_time(run).text


def test_consumption_that_is_not_reported_is_reported(run):
    chosen = messages(run)[5:16]
    run.packets["b"] = [each for each in run.packets["b"] if each not in chosen]
    finding = on_time(run)
    assert finding.outcome is FAIL
    assert finding.position > position(chosen[0]) - 2048
    assert "the last status message plus a quarter window reached only" in finding.text


def test_consumption_acknowledged_a_little_late_is_no_fault(run):
    chosen = messages(run)[5:7]
    run.packets["b"] = [each for each in run.packets["b"] if each not in chosen]
    assert on_time(run).outcome is PASS


@pytest.mark.parametrize(("count", "outcome"), [(2, PASS), (4, FAIL)])
def test_a_status_message_that_is_repeated_too_often_is_reported(run, count, outcome):
    packet = messages(run)[5]
    for number in range(1, count):
        again = copy.copy(packet)
        again.time_ns += number
        run.packets["b"].append(again)
    finding = on_time(run)
    assert finding.outcome is outcome
    assert (f"{count} identical status messages within 0 ms" in finding.text) == (outcome is FAIL)


def test_windows_that_shrink_and_grow_again_are_no_repeats(run):
    (traffic,) = run.case.traffic
    changed = traffic.model_copy(update={"receive": traffic.receive + "|cc=cubic"})
    run.case = run.case.model_copy(update={"traffic": (changed,)})
    packet = messages(run)[5]
    where = position(packet)
    for number in range(8):
        again = copy.copy(packet)
        again.time_ns += number + 1
        set_position(again, where, (1 + number % 2) * MTU)
        run.packets["b"].append(again)
    finding = on_time(run)
    assert finding.outcome is PASS, finding.text


@pytest.mark.parametrize(
    ("receive", "window", "outcome"),
    [("|cc=cubic", MTU, PASS), ("|cc=cubic", 2 * MTU, FAIL), ("", MTU, FAIL)],
)
def test_a_loss_repeats_the_status_message_with_the_shortest_window(run, receive, window, outcome):
    (traffic,) = run.case.traffic
    changed = traffic.model_copy(update={"receive": traffic.receive + receive})
    run.case = run.case.model_copy(update={"traffic": (changed,)})
    packet = messages(run)[5]
    set_position(packet, position(packet), window)
    for number in range(1, 4):
        again = copy.copy(packet)
        again.time_ns += number
        run.packets["b"].append(again)
    finding = on_time(run)
    assert finding.outcome is outcome, finding.text


def test_a_receiver_that_never_answers_is_reported(run):
    run.packets["b"] = [each for each in run.packets["b"] if each.kind != "SM"]
    assert on_time(run).outcome is FAIL
    assert "b sent no status message" in on_time(run).text
    assert backed(run).outcome is Outcome.INCONCLUSIVE


def test_status_messages_backed_by_data_are_a_pass(run):
    assert backed(run).outcome is PASS


@pytest.mark.parametrize("reliable", [True, False])
def test_a_position_beyond_the_arrived_data_is_reported(tmp_path, reliable):
    run = make_run(tmp_path, reliable=reliable)
    packet = messages(run)[5]
    acknowledged = position(packet)
    came = [each for each in run.packets["b"] if each.time_ns <= packet.time_ns]
    last = [each for each in came if each.kind == "DATA"][-1]
    length, offset, term_id = struct.unpack_from("<i4xi8xi", last.payload)
    top = (term_id - INITIAL_TERM_ID) * TERM_LENGTH + offset + (length + 31) // 32 * 32
    assert top >= acknowledged
    set_position(packet, top)
    assert backed(run).outcome is PASS
    set_position(packet, top + 32)
    finding = backed(run)
    assert (finding.outcome, finding.position) == (FAIL, top + 32)
    assert "before all data up to that position had arrived" in finding.text


def test_a_position_behind_a_gap_is_reported_on_a_reliable_stream(run):
    hole = run.decisions[2][12]
    asked = [each for each in run.packets["b"] if each.kind == "NAK"][2]
    early = copy.copy(messages(run)[0])
    early.time_ns = asked.time_ns
    set_position(early, hole + 32)
    run.packets["b"].append(early)
    assert backed(run).position == hole + 32


def test_a_decreasing_position_is_reported_unless_another_receiver_sent_it(run):
    packet = messages(run)[6]
    set_position(packet, 0)
    finding = backed(run)
    assert (finding.outcome, finding.position) == (FAIL, 0)
    assert "after a status message with a higher position by the same receiver" in finding.text
    packet.payload = packet.payload[:28] + struct.pack("<q", 77)
    assert backed(run).outcome is PASS


@pytest.mark.parametrize("window", [0, -1, TERM_LENGTH // 2 + 1])
def test_an_impossible_window_is_reported(run, window):
    packet = messages(run)[5]
    set_position(packet, position(packet), window)
    finding = backed(run)
    assert finding.outcome is FAIL
    assert "expected a window from 1 to 32768" in finding.text


@pytest.mark.parametrize("check", [status_messages_on_time, status_messages_backed])
def test_missing_receivers_capture_is_inconclusive(run, check):
    path = run.write()
    run.folder.capture("b").unlink()
    assert judged(check, Evidence(path), run.traffic).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(("behind", "outcome"), [("sub-pos", FAIL), ("slow", PASS)])
def test_the_position_to_report_is_that_of_the_slowest_subscriber(
    run, monkeypatch, behind, outcome
):
    monkeypatch.setitem(COUNTERS, "b", {**COUNTERS["b"], "slow": (64, 4)})
    for time_ns, name, value in list(run.samples["b"]):
        if name == "sub-pos":
            run.samples["b"].append((time_ns, "slow", value if behind == "sub-pos" else 0))
    run.values["slow"] = run.values["sub-pos"]
    chosen = messages(run)[5:16]
    run.packets["b"] = [each for each in run.packets["b"] if each not in chosen]
    assert on_time(run).outcome is outcome


@pytest.mark.parametrize(("behind", "outcome"), [(0, PASS), (4096, FAIL)])
def test_a_position_that_the_slowest_has_not_reached_is_reported(run, monkeypatch, behind, outcome):
    monkeypatch.setitem(COUNTERS, "b", {**COUNTERS["b"], "slow": (64, 4)})
    for time_ns, name, value in list(run.samples["b"]):
        if name == "sub-pos":
            run.samples["b"].append((time_ns, "slow", max(0, value - behind)))
    run.values["slow"] = run.values["sub-pos"] - behind
    finding = backed(run)
    assert finding.outcome is outcome
    assert ("before all subscribers had consumed" in finding.text) == (outcome is FAIL)


def test_a_later_subscriber_is_ignored(run, monkeypatch):
    monkeypatch.setitem(COUNTERS, "b", {**COUNTERS["b"], "own": (64, 4), "late": (65, 4)})
    for time_ns, name, value in list(run.samples["b"]):
        if name == "sub-pos":
            run.samples["b"].append((time_ns, "own", value))
    run.samples["b"].append((run.now_ns // 2, "late", 0))
    run.values["own"], run.values["late"] = run.values["sub-pos"], 0
    assert backed(run).outcome is PASS


@pytest.mark.parametrize(("restarts", "outcome"), [(False, PASS), (True, FAIL)])
def test_an_archive_that_does_not_read_is_the_slowest_until_another_one_replaces_it(
    run, monkeypatch, restarts, outcome
):
    archives = {"dead": (65, 4), **({"next": (66, 4)} if restarts else {})}
    monkeypatch.setitem(COUNTERS, "b", {**COUNTERS["b"], "own": (64, 4), **archives})
    chosen = messages(run)[5:16]
    restarted_ns = chosen[0].time_ns - 1
    read = [(at_ns, value) for at_ns, name, value in run.samples["b"] if name == "sub-pos"]
    run.samples["b"] += [(at_ns, "own", value) for at_ns, value in read]
    run.samples["b"].append((read[0][0], "dead", 0))
    if restarts:
        later = [(at_ns, "next", value) for at_ns, value in read if at_ns >= restarted_ns]
        run.samples["b"] += later
    run.values |= {"own": run.values["sub-pos"], "dead": 0, "next": run.values["sub-pos"]}
    run.packets["b"] = [each for each in run.packets["b"] if each not in chosen]
    assert on_time(run).outcome is outcome
