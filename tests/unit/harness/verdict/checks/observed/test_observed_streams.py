"""Observed streams, without a plan: violations that are found, and what is unknown."""

from dataclasses import replace

import pytest

from tests.unit.harness.verdict.synthetic_run import (
    ADDRESS,
    SESSION_ID,
    STEP_NS,
    SyntheticRun,
    make_run,
)
from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.dissect.frames.layout import SM_FLAG_END_OF_STREAM
from windtunnel.harness.scenario.applications.application_case import ApplicationCase
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.verdict.checks.observed.observed_streams import (
    observed_streams,
    unknown_notes,
    unread_notes,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import passed
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.wire import CLOSING_NS
from windtunnel.harness.verdict.judge import judge

FROM_CAPTURES = [
    "observed_data_arrived",
    "naks_only_for_gaps",
    "retransmits_only_if_asked",
    "retransmits_identical",
    "observed_end_of_stream",
]
FROM_DRIVERS = ["rcv_hwm_from_wire", "rcv_pos_monotonic", "image_log_equals_publication"]
OF_CHANNEL = ["sends_within_window"]
HEADER = 32


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    """A run whose only stream is observed."""
    made = make_run(tmp_path)
    seen = made.traffic.model_copy(
        update={"id": "seen", "observed": True, "rejoins": True, "total_bytes": 1}
    )
    application = ApplicationCase(id="one", host="a", command=("x",), stop_within_ns=1)
    made.case = made.case.model_copy(
        update={"observed": (seen,), "applications": (application,), "expect": ()}
    )
    return made


def findings_of(run):
    return {each.name: each for each in observed_streams(Evidence(run.write()))}


def unknown(findings):
    return findings["observed_streams"].text.partition("unknown: ")[2]


def data_packets(run, host):
    return [each for each in run.packets[host] if each.kind == "DATA"]


def test_a_valid_stream_passes_each_check_and_its_content_is_unknown(run):
    found = findings_of(run)
    assert list(found) == [*FROM_CAPTURES, *FROM_DRIVERS, *OF_CHANNEL, "observed_streams"]
    assert {each.outcome for each in found.values()} == {Outcome.PASS}
    assert unknown(found) == "what the applications offered, and what they did with the data"
    assert {each.about for each in found.values()} == {"seen"}


def test_no_files_of_the_applications_are_read(run):
    path = run.write()
    for file in path.glob("hosts/*/*er-one.*"):
        file.unlink()
    assert {each.outcome for each in observed_streams(Evidence(path))} == {Outcome.PASS}


def test_another_byte_than_was_sent_is_named(run):
    packet = data_packets(run, "b")[3]
    position = int(run.log.frames["position"][3])
    payload = bytearray(packet.payload)
    payload[HEADER] ^= 1
    packet.payload = bytes(payload)
    found = findings_of(run)["observed_data_arrived"]
    assert (found.outcome, found.position, found.conclusive) == (Outcome.FAIL, position, True)


def test_data_that_never_arrives_is_a_failure_after_the_end_of_the_stream(run):
    lost = data_packets(run, "b")[-1].payload
    run.packets["b"] = [each for each in run.packets["b"] if each.payload != lost]
    found = findings_of(run)["observed_data_arrived"]
    assert found.outcome is Outcome.FAIL
    assert "never arrived completely" in found.text


def test_data_that_never_arrives_is_unknown_without_the_end_of_the_stream(run):
    lost = data_packets(run, "b")[-1].payload
    run.packets["b"] = [each for each in run.packets["b"] if each.payload != lost]
    for packets in run.packets.values():
        packets[:] = [each for each in packets if each.kind != "HEARTBEAT"]
    found = findings_of(run)
    assert found["observed_data_arrived"].outcome is Outcome.INCONCLUSIVE
    assert "observed_end_of_stream" not in found
    assert "the publication has not signalled the end of its stream" in unknown(found)


def test_an_end_before_the_last_data_is_named(run):
    # The last data is sent again, one frame further.
    last = run.packets["a"]
    heartbeat = next(each for each in last if each.kind == "HEARTBEAT")
    at = last.index(heartbeat)
    early = bytearray(heartbeat.payload)
    early[8:12] = (int.from_bytes(early[8:12], "little") - HEADER).to_bytes(4, "little")
    early[5] |= 0x20
    last.insert(at, replace(heartbeat, payload=bytes(early)))
    found = findings_of(run)["observed_end_of_stream"]
    assert found.outcome is Outcome.FAIL


def test_positions_of_a_driver_without_samples_are_unknown(run):
    path = run.write()
    for name in ("counters.json", "counters.bin", "logs.json"):
        (path / "hosts" / "b" / name).unlink()
    found = {each.name: each for each in observed_streams(Evidence(path))}
    assert list(found) == [*FROM_CAPTURES, *OF_CHANNEL, "observed_streams"]
    for name in FROM_DRIVERS:
        assert f"{name} (" in unknown(found)


def leave_at(run, time_ns):
    """Let the receiver send nothing from a time on."""
    run.packets["b"] = [
        each for each in run.packets["b"]
        if each.kind not in ("SM", "NAK") or each.time_ns < time_ns
    ]  # fmt: skip


def stay(run):
    """Let the receiver send a status message long after all data has arrived."""
    message = next(each for each in run.packets["b"] if each.kind == "SM")
    run.packets["b"].append(replace(message, time_ns=run.now_ns + CLOSING_NS))


def test_positions_after_the_last_status_message_are_unknown(run):
    stay(run)
    end = run.log.end_position
    samples = run.samples["b"]
    at = [at for at, each in enumerate(samples) if each[1] == "rcv-hwm"][-1]
    samples[at] = (*samples[at][:2], int(run.log.frames[-1]["position"]))
    found = findings_of(run)["rcv_hwm_from_wire"]
    assert found.outcome is Outcome.FAIL
    assert found.text.endswith(f"expected the highest arrived position {end}")
    arrived_ns = data_packets(run, "b")[-1].time_ns
    leave_at(run, arrived_ns)
    found = findings_of(run)
    assert "rcv_hwm_from_wire" not in found
    assert "the subscription may have been closed" in unknown(found)


def test_data_that_a_receiver_did_not_know_of_when_it_left_is_unknown(run):
    """The last frame is lost, and what shows that arrives after the last status message."""
    stay(run)
    last = int(run.log.frames[-1]["position"])
    lost = data_packets(run, "b")[-1]
    run.packets["b"] = [each for each in run.packets["b"] if each.payload != lost.payload]
    assert findings_of(run)["observed_data_arrived"].outcome is Outcome.FAIL
    leave_at(run, lost.time_ns)
    farewell = next(each for each in run.packets["b"] if each.kind == "SM")
    payload = bytearray(farewell.payload)
    payload[5] = SM_FLAG_END_OF_STREAM
    run.packets["b"].append(replace(farewell, time_ns=run.now_ns, payload=bytes(payload)))
    found = findings_of(run)["observed_data_arrived"]
    assert found.outcome is Outcome.PASS
    assert found.facts == {"bytes": last}
    assert "the subscription may have been closed" in found.text


def test_a_log_that_ends_after_the_last_status_message_is_unknown(run):
    stay(run)
    last = int(run.log.frames[-1]["position"])
    run.logs["b"][run.in_log(last) :][:HEADER] = 0
    found = findings_of(run)["image_log_equals_publication"]
    assert found.outcome is Outcome.FAIL
    arrived_ns = data_packets(run, "b")[-1].time_ns
    leave_at(run, arrived_ns)
    found = findings_of(run)
    assert "image_log_equals_publication" not in found
    assert "image_log_equals_publication (the image's log ends at position" in unknown(found)


def test_retransmits_that_another_receiver_has_requested(run, monkeypatch):
    """A publication with several destinations sends a retransmit to all of them."""
    monkeypatch.setitem(ADDRESS, "c", "10.64.2.10")
    nak = next(each for each in run.packets["a"] if each.kind == "NAK")
    sent = data_packets(run, "a")[0]
    received = data_packets(run, "b")[0]
    again_ns = run.now_ns + STEP_NS
    run.packets["a"].append(replace(sent, time_ns=again_ns + 2))
    run.packets["b"].append(replace(received, time_ns=again_ns + 3))
    found = findings_of(run)["retransmits_only_if_asked"]
    assert found.outcome is Outcome.FAIL
    asked = bytearray(nak.payload)
    asked[16:24] = sent.payload[20:24] + sent.payload[8:12]
    run.packets["a"].append(replace(nak, time_ns=again_ns, source="c", payload=bytes(asked)))
    found = findings_of(run)["retransmits_only_if_asked"]
    assert found.outcome is Outcome.PASS, found.text


def test_data_beyond_the_window_is_named(run):
    feedback = [each for each in run.packets["a"] if each.kind == "SM"]
    for each in feedback:
        window = bytearray(each.payload)
        window[24:28] = (64).to_bytes(4, "little")
        each.payload = bytes(window)
    assert feedback
    found = findings_of(run)["sends_within_window"]
    assert found.outcome is Outcome.FAIL


def test_a_killed_driver_leaves_the_start_of_its_images_unknown(run):
    order = EventCase(
        id="crash", host="b", process="driver", trigger="after", at=1, action="kill", lasts_ns=1
    )
    run.case = run.case.model_copy(update={"events": (order,)})
    run.folder.make()
    happened = [AppliedEvent("crash", "b", "kill", ["driver"], 1, 2)]
    write_applied_events(run.folder.host_events, happened)
    found = findings_of(run)
    assert "event crash killed a driver" in unknown(found)
    assert list(found) == [*FROM_CAPTURES[2:], "observed_streams"]


def test_a_stream_that_was_never_sent_is_missing(run):
    seen = run.case.observed[0].model_copy(update={"stream_id": 77})
    run.case = run.case.model_copy(update={"observed": (seen,)})
    (found,) = observed_streams(Evidence(run.write()))
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "has no SETUP of stream 77" in found.text


def leave_only_setups(run):
    for packets in run.packets.values():
        packets[:] = [each for each in packets if each.kind == "SETUP"]


def test_a_stream_without_a_subscriber_is_named(run):
    leave_only_setups(run)
    found = findings_of(run)["observed_data_arrived"]
    assert found.outcome is Outcome.PASS
    assert found.text.startswith("no data was sent, and b sent no status message: no client there")
    (note,) = unread_notes([found])
    assert note.startswith("no data of seen: it had no subscriber")


def test_a_subscriber_that_was_sent_nothing_is_no_missing_subscriber(run):
    answers = [each for each in run.packets["b"] if each.kind == "SM"]
    leave_only_setups(run)
    run.packets["b"] += answers
    found = findings_of(run)["observed_data_arrived"]
    assert found.text == "all 0 bytes from position 0 to 0 arrived, as they were sent"
    assert not list(unread_notes([found]))


def test_each_session_is_judged_separately(run):
    first = next(each for each in run.packets["a"] if each.kind == "SETUP")
    other = bytearray(first.payload)
    other[12:16] = (SESSION_ID + 1).to_bytes(4, "little", signed=True)
    run.packets["a"].insert(0, replace(first, payload=bytes(other)))
    found = observed_streams(Evidence(run.write()))
    abouts = list(dict.fromkeys(each.about for each in found))
    assert abouts == [f"seen session {SESSION_ID + 1}", f"seen session {SESSION_ID}"]


def test_of_many_streams_the_first_are_named():
    text = "unknown: what the applications offered, and what they did with the data"
    found = [passed("observed_streams", text, f"s-{number}") for number in range(7)]
    known = passed("observed_streams", "nothing is unknown", "reported")
    assert list(unknown_notes(found[:4])) == [text.replace(":", " for s-0, s-1, s-2, s-3:", 1)]
    assert list(unknown_notes([*found, known])) == [
        text.replace(":", " for s-0, s-1, s-2, s-3 and 3 more:", 1)
    ]
    assert list(unknown_notes(found)) == [text.replace(":", " for all 7 observed streams:", 1)]


def test_a_verdict_names_the_streams_whose_images_were_replaced():
    text = "9 frames of session 7 sent; unknown: whether all data arrived, and where positions "
    text += "should be (the session had 2 images)"
    found = [passed("observed_streams", text, "s"), passed("observed_streams", "all known", "t")]
    assert list(unknown_notes(found)) == [
        "unknown for s: whether all data arrived, as images were replaced (no figures)"
    ]


def test_a_verdict_names_what_is_unknown(run):
    verdict = judge(run.write())
    names = [each.name for each in verdict.checks]
    assert "observed_data_arrived" in names
    assert "expectations" not in names
