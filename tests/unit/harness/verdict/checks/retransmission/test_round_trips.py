"""Round-trip measurements of a sender: requests, replies, and the counter."""

import struct
from dataclasses import replace

import pytest

from tests.unit.harness.verdict import synthetic_run
from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_run import (
    PORT,
    SENDER_PORT,
    SESSION_ID,
    STREAM_ID,
    Packet,
    SyntheticRun,
    make_run,
)
from tests.unit.harness.verdict.views.test_pauses import happen, pause
from windtunnel.harness.artifact.run.manifest import SubjectFacts
from windtunnel.harness.dissect.frames.layout import SM_FLAG_END_OF_STREAM
from windtunnel.harness.verdict.checks.retransmission.nak_times import SLACK_NS
from windtunnel.harness.verdict.checks.retransmission.round_trips import (
    INTERVAL_NS,
    round_trips_measured,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

PASS, FAIL = Outcome.PASS, Outcome.FAIL
FLAGS_AT = 5
"""Offset of the flags in a frame."""
RTT = "snd-rtt"
RANGES = "|windtunnel.retransmit-ranges=true"
MS = 1_000_000
FIRST_RTT_NS, SECOND_RTT_NS = 2 * MS, 4 * MS
ECHO = 77
SOON_NS = 100_000
"""Time until a request is sent, or answered."""


@pytest.fixture(autouse=True)
def counter(monkeypatch):
    """Give the sender's driver the counter, if a run has a value for it."""
    named = {**synthetic_run.COUNTERS["a"], RTT: (56, 5303)}
    monkeypatch.setitem(synthetic_run.COUNTERS, "a", named)


def rttm(flags, echo, delta_ns=0):
    facts = (SESSION_ID, STREAM_ID, echo, delta_ns, 0)
    return struct.pack("<iBBHiiqqq", 40, 0, flags, 6, *facts)


def captured(run, host, source, payload, time_ns):
    ports = (SENDER_PORT, PORT) if source == "a" else (PORT, SENDER_PORT)
    packet = Packet(time_ns, source, "b" if source == "a" else "a", ports, payload, "RTTM")
    run.packets[host].append(packet)
    return packet


def measure(run, time_ns, echo, rtt_ns):
    """Send a request and its reply. Returns the packets at the sender and at the receiver."""
    half_ns = (rtt_ns - SOON_NS) // 2
    return [
        captured(run, "a", "a", rttm(0x80, echo), time_ns),
        captured(run, "b", "a", rttm(0x80, echo), time_ns + half_ns),
        captured(run, "b", "b", rttm(0, echo), time_ns + half_ns + SOON_NS),
        captured(run, "a", "b", rttm(0, echo), time_ns + rtt_ns),
    ]


def first_of(run, kind):
    return next(each for each in run.packets["a"] if each.kind == kind and each.source == "b")


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    """A run of 0.4 s: a measurement when the receiver connects, and another after a NAK."""
    run = make_run(tmp_path)
    (traffic,) = run.case.traffic
    changed = traffic.model_copy(update={"channel": traffic.channel + RANGES})
    run.case = run.case.model_copy(update={"traffic": (changed,), "fidelity": "sim"})
    begun_ns = first_of(run, "SM").time_ns + SOON_NS
    run.measured = [measure(run, begun_ns, ECHO, FIRST_RTT_NS)]
    again_ns = begun_ns + FIRST_RTT_NS + INTERVAL_NS + SOON_NS
    run.measured.append(measure(run, again_ns, ECHO + 1, SECOND_RTT_NS))
    third_ns = again_ns + SECOND_RTT_NS + INTERVAL_NS + SOON_NS
    run.measured.append(measure(run, third_ns, ECHO + 2, FIRST_RTT_NS))
    fourth_ns = third_ns + FIRST_RTT_NS + INTERVAL_NS + SOON_NS
    run.measured.append(measure(run, fourth_ns, ECHO + 3, FIRST_RTT_NS))
    run.values[RTT] = FIRST_RTT_NS + (SECOND_RTT_NS - FIRST_RTT_NS) // 8
    return run


def finding_of(run):
    return round_trips_measured(Evidence(run.write()), run.traffic)


def remove(run, measurement):
    for host in ("a", "b"):
        run.packets[host] = [each for each in run.packets[host] if each not in measurement]


def test_measurements_that_are_due_are_a_pass(run):
    finding = finding_of(run)
    assert finding.outcome is PASS, finding.text
    assert finding.text == "4 requests, 4 replies"


@pytest.mark.parametrize("driver", ["ours", "aeronmd:/opt/aeronmd"])
def test_a_sender_without_the_mode_sends_no_requests(run, driver):
    if driver == "ours":
        (traffic,) = run.case.traffic
        changed = traffic.model_copy(update={"channel": traffic.channel.removesuffix(RANGES)})
        run.case = run.case.model_copy(update={"traffic": (changed,)})
    else:
        run.manifest.subjects = {"a": SubjectFacts("publisher", driver, "1.53", {})}
    finding = finding_of(run)
    assert finding.outcome is FAIL
    assert finding.text == "the sender requested its round-trip time, expected no request"
    for each in run.measured:
        remove(run, each)
    assert finding_of(run).outcome is PASS


@pytest.mark.parametrize(
    ("after_ns", "outcome"), [(0, PASS), (SLACK_NS, PASS), (SLACK_NS + 1, FAIL)]
)
def test_no_measurement_is_due_after_the_receiver_has_left(run, after_ns, outcome):
    """The receiver sends a status message with EOS when the first request is due, or later."""
    first = first_of(run, "SM")
    for each in run.measured:
        remove(run, each)
    payload = bytearray(first.payload)
    payload[FLAGS_AT] |= SM_FLAG_END_OF_STREAM
    run.values[RTT] = 0
    done = replace(first, time_ns=first.time_ns + after_ns, payload=bytes(payload))
    run.packets["a"].append(done)
    assert finding_of(run).outcome is outcome


@pytest.mark.parametrize("number", [0, 1])
def test_a_measurement_that_is_due_but_not_made_is_reported(run, number):
    for each in run.measured[number:]:
        remove(run, each)
    finding = finding_of(run)
    assert finding.outcome is FAIL
    assert finding.text == f"a request was due, but was not sent until {SLACK_NS} ns later"


def test_a_nak_may_be_read_after_the_request_that_follows_it(run):
    request_ns = run.measured[1][0].time_ns
    for host in ("a", "b"):
        kept = [each for each in run.packets[host] if each.kind != "NAK"]
        naks = [each for each in run.packets[host] if each.kind == "NAK"]
        naks[0].time_ns = run.measured[0][0].time_ns + MS
        naks[1].time_ns = request_ns - SLACK_NS
        run.packets[host] = [*kept, *naks[:2]]
    remove(run, run.measured[3])
    run.values[RTT] = SMOOTHED[3]
    finding = finding_of(run)
    assert finding.outcome is PASS, finding.text
    for host in ("a", "b"):
        last = [each for each in run.packets[host] if each.kind == "NAK"][-1]
        last.time_ns -= 1
    assert finding_of(run).outcome is FAIL


def test_without_another_nak_no_measurement_is_due(run):
    measured_ns = run.measured[0][0].time_ns
    for host in ("a", "b"):
        run.packets[host] = [
            each for each in run.packets[host] if each.kind != "NAK" or each.time_ns < measured_ns
        ]
    finding = finding_of(run)
    assert finding.outcome is FAIL
    assert finding.text.startswith("a request was sent although no NAK had arrived")
    for each in run.measured[1:]:
        remove(run, each)
    run.values[RTT] = FIRST_RTT_NS
    assert finding_of(run).outcome is PASS


@pytest.mark.parametrize(("early_ns", "outcome"), [(SLACK_NS, PASS), (SLACK_NS + 1, FAIL)])
def test_a_measurement_is_not_repeated_within_100_ms(run, early_ns, outcome):
    for packet in (each for measured in run.measured[1:] for each in measured):
        packet.time_ns -= SOON_NS + early_ns
    finding = finding_of(run)
    assert finding.outcome is outcome
    if outcome is FAIL:
        assert finding.text == f"a request was sent {SLACK_NS + 1} ns early"


def test_a_request_that_is_not_answered_is_reported(run):
    reply = run.measured[1][2]
    run.packets["b"].remove(reply)
    finding = finding_of(run)
    assert finding.outcome is FAIL
    assert finding.text == f"a request was not answered within {SLACK_NS} ns"


@pytest.mark.parametrize(
    ("fidelity", "late_ns", "outcome"),
    [
        ("sim", SLACK_NS, PASS),
        ("sim", SLACK_NS + 1, FAIL),
        ("netns", SLACK_NS + 1, PASS),
    ],
)
def test_a_late_answer_is_reported(run, fidelity, late_ns, outcome):
    run.case = run.case.model_copy(update={"fidelity": fidelity})
    run.measured[0][2].time_ns = run.measured[0][1].time_ns + late_ns
    assert finding_of(run).outcome is outcome


@pytest.mark.parametrize("echo", [ECHO, 5])
def test_a_reply_without_a_request_is_reported(run, echo):
    captured(run, "b", "b", rttm(0, echo), run.measured[1][3].time_ns)
    finding = finding_of(run)
    assert finding.outcome is FAIL
    assert finding.text.startswith("1 replies answer no request")


def test_a_reply_with_another_timestamp_is_reported(run):
    run.measured[1][2].payload = rttm(0, ECHO + 9)
    assert finding_of(run).outcome is FAIL


def test_a_sender_answers_the_requests_of_a_receiver(run):
    at_ns = run.measured[1][0].time_ns
    captured(run, "a", "b", rttm(0x80, 9), at_ns)
    assert finding_of(run).outcome is FAIL
    captured(run, "a", "a", rttm(0, 9), at_ns + SLACK_NS)
    assert finding_of(run).outcome is PASS


SMOOTHED = {3: 2_218_750, 4: 2_191_406}


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (SMOOTHED[3] + SLACK_NS, PASS),
        (SMOOTHED[4] - SLACK_NS, PASS),
        (SMOOTHED[3] + SLACK_NS + 1, FAIL),
        (SMOOTHED[4] - SLACK_NS - 2, FAIL),
        (0, FAIL),
    ],
)
def test_the_counter_is_the_smoothed_time_of_the_replies(run, value, outcome):
    run.values[RTT] = value
    finding = finding_of(run)
    assert finding.outcome is outcome
    if outcome is FAIL:
        assert finding.text.startswith(f"snd-rtt is {value}, expected about 2")


@pytest.mark.parametrize(("is_paused", "outcome"), [(True, PASS), (False, FAIL)])
def test_a_reply_in_a_pause_of_the_sender_is_read_at_its_end(run, is_paused, outcome):
    paused_ns = 20 * MS
    for each in run.measured[3]:
        each.time_ns += paused_ns
    replied = run.measured[2][-1]
    began_ns = replied.time_ns - 10
    smoothed_ns = 0
    for taken_ns in (FIRST_RTT_NS, SECOND_RTT_NS, FIRST_RTT_NS + paused_ns - 10, FIRST_RTT_NS):
        smoothed_ns += (taken_ns - smoothed_ns) // (8 if smoothed_ns else 1)
    run.values[RTT] = smoothed_ns
    paused = pause(began_ns, began_ns + paused_ns, host="a" if is_paused else "b")
    finding = round_trips_measured(happen(run, paused), run.traffic)
    assert finding.outcome is outcome, finding.text


def test_a_sender_with_the_mode_has_the_counter(run):
    del run.values[RTT]
    finding = finding_of(run)
    assert finding.outcome is FAIL
    assert finding.text == "the stream has 0 counters snd-rtt, expected one"


def test_missing_evidence_is_inconclusive(run):
    path = run.write()
    run.folder.host("a").counters.unlink()
    assert judged(round_trips_measured, Evidence(path), run.traffic).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("index", "payload", "text"),
    [
        (0, rttm(0x81, ECHO), "an RTTM request has flags 0x81 and reception delta 0 ns"),
        (0, rttm(0x80, ECHO, 1), "an RTTM request has flags 0x80 and reception delta 1 ns"),
        (2, rttm(0x01, ECHO), "an RTTM reply has flags 0x01, expected 0x00"),
    ],
)
def test_wrong_fields_are_reported(run, index, payload, text):
    run.measured[0][index].payload = payload
    finding = finding_of(run)
    assert finding.outcome is FAIL
    assert text in finding.text
