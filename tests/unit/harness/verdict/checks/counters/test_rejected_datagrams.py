"""Invalid datagrams, over-runs and under-runs are counted as the capture shows."""

import struct
from dataclasses import replace

import pytest

from tests.unit.harness.verdict.synthetic_events import add_earlier_session, write_with_event
from tests.unit.harness.verdict.synthetic_group import join, write
from tests.unit.harness.verdict.synthetic_run import (
    PORT,
    SENDER_PORT,
    SESSION_ID,
    STEP_NS,
    TERM_LENGTH,
    TRAFFIC,
    Packet,
    SyntheticRun,
    data_header,
    heartbeat,
    make_run,
    nak,
    setup_frame,
)
from windtunnel.harness.artifact.host.application import Part, SubscriberFacts
from windtunnel.harness.verdict.checks.counters.rejected_datagrams import (
    invalid_packets_counted,
    over_under_runs_counted,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

INVALID, UNDER_RUNS, OVER_RUNS = "b/14", "b/12", "b/13"
DATA = 1


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def invalid(run):
    return {
        each.about: each for each in invalid_packets_counted(Evidence(run.write()), [run.traffic])
    }


def runs(run):
    (finding,) = over_under_runs_counted(Evidence(run.write()), [run.traffic])
    return finding


def middle(run, host="b"):
    """Return a packet of the other host, well within the stream's lifetime."""
    other = "a" if host == "b" else "b"
    came = [each for each in run.packets[host] if each.source == other]
    return came[len(came) // 2]


def arrive(run, payload: bytes, host="b") -> None:
    """Let a forged datagram arrive."""
    near = middle(run, host)
    run.packets[host].append(
        Packet(near.time_ns + 1, near.source, host, near.ports, payload, near.kind)
    )


def data(position: int, length: int = 64, version: int = 0) -> bytes:
    frame = bytearray(data_header(position, length, 0xC0, DATA) + bytes(length - 32))
    frame[4] = version
    return bytes(frame)


def acknowledged_position(packet) -> int:
    """Return the consumed position of a status message."""
    term_id, offset = struct.unpack_from("<ii", packet.payload, 16)
    return (term_id + 3) * TERM_LENGTH + offset


BROKEN = {
    "cut off": data(4096, 96)[:64],
    "of another version": data(4096, version=3),
    "not whole frames": data(4096)[:50],
    "misaligned": struct.pack("<iBBHi", 64, 0, 0xC0, DATA, 4100) + data(4096)[12:],
    "beyond its term": data(TERM_LENGTH - 32, 96),
    "of elsewhere": data(4096) + data(8192),
    "too short": b"\0\0\0",
    "a SETUP of no term": setup_frame()[:28] + struct.pack("<ii", 12345, 1408) + bytes(4),
}


def test_a_run_without_invalid_datagrams_counts_none(run):
    assert {each.outcome for each in invalid(run).values()} == {Outcome.PASS}


@pytest.mark.parametrize("payload", BROKEN.values(), ids=BROKEN)
def test_each_invalid_datagram_must_be_counted_once(run, payload):
    arrive(run, payload)
    found = invalid(run)["b"]
    assert found.outcome is Outcome.FAIL
    assert (found.facts["counted"], found.facts["most"]) == (0, 1)
    run.values[INVALID] = 1
    assert invalid(run)["b"].outcome is Outcome.PASS
    run.values[INVALID] = 2
    assert invalid(run)["b"].outcome is Outcome.FAIL


@pytest.mark.parametrize(
    "payload",
    [data(4096), data(4096) + data(4096 + 64), data(TERM_LENGTH - 64), heartbeat(4096)],
    ids=["one frame", "two in a row", "to the end of the term", "a heartbeat"],
)
def test_a_valid_datagram_must_not_be_counted(run, payload):
    arrive(run, payload)
    assert invalid(run)["b"].outcome is Outcome.PASS
    run.values[INVALID] = 1
    assert invalid(run)["b"].outcome is Outcome.FAIL


@pytest.mark.parametrize(
    "payload",
    [nak(TERM_LENGTH - 64, 96), nak(4096, 64)[:20]],
    ids=["a NAK over the end of a term", "a cut NAK"],
)
def test_datagrams_to_the_publisher_are_checked_too(run, payload):
    arrive(run, payload, "a")
    assert invalid(run)["a"].outcome is Outcome.FAIL
    run.values["a/14"] = 1
    assert invalid(run)["a"].outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("host", "payload"),
    [
        ("a", BROKEN["beyond its term"]),
        ("a", BROKEN["of elsewhere"]),
        ("a", BROKEN["a SETUP of no term"]),
        ("b", nak(TERM_LENGTH - 64, 96)),
    ],
    ids=["DATA beyond its term", "DATA of elsewhere", "a SETUP of no term", "a NAK"],
)
def test_a_socket_ignores_frames_that_are_not_meant_for_it(run, host, payload):
    arrive(run, payload, host)
    assert invalid(run)[host].outcome is Outcome.PASS
    run.values[f"{host}/14"] = 1
    assert invalid(run)[host].outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("host", "port", "outcome"),
    [
        ("b", PORT, Outcome.FAIL),
        ("b", PORT + 1, Outcome.PASS),
        ("a", SENDER_PORT, Outcome.FAIL),
        ("a", SENDER_PORT + 1, Outcome.PASS),
    ],
)
def test_a_malformed_frame_at_another_port_need_not_be_counted(run, host, port, outcome):
    """The publication or subscription there may be closed, and its port with it."""
    stream = run.traffic.model_copy(update={"ports": (PORT, PORT + 1)})
    run.case = run.case.model_copy(update={"traffic": (stream,)})
    arrive(run, BROKEN["of another version"], host)
    packet = run.packets[host][-1]
    packet.ports = (packet.ports[0], port)
    assert invalid(run)[host].outcome is outcome
    run.values[f"{host}/14"] = 1
    assert invalid(run)[host].outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("after_ns", "counts"),
    [
        (-STEP_NS, [Outcome.PASS, Outcome.FAIL]),
        (20 * STEP_NS, [Outcome.FAIL, Outcome.PASS]),
    ],
)
def test_a_restarted_driver_has_counted_what_arrived_since(run, after_ns, counts):
    at_ns = middle(run).time_ns - 30 * STEP_NS
    near = middle(run)
    packet = Packet(at_ns + after_ns, "a", "b", near.ports, BROKEN["misaligned"], near.kind)
    run.packets["b"].append(packet)
    for value, outcome in enumerate(counts):
        run.values[INVALID] = value
        path = write_with_event(run, "kill", "b", "driver", (at_ns - STEP_NS, at_ns))
        found = invalid_packets_counted(Evidence(path), [run.traffic])
        assert [each.outcome for each in found if each.about == "b"] == [outcome]


@pytest.mark.parametrize(("is_read", "outcome"), [(True, Outcome.FAIL), (False, Outcome.PASS)])
def test_nothing_need_be_counted_between_two_images(run, is_read, outcome):
    arrive(run, BROKEN["misaligned"])
    at_ns = run.packets["b"][-1].time_ns
    end_ns = run.now_ns + 10**9
    path = run.write()
    document = run.folder.host("b").subscriber(TRAFFIC).document
    facts = SubscriberFacts.read(document)
    assert facts is not None
    first = Part(SESSION_ID, 0, 4096, False, 0, at_ns + (300 * STEP_NS if is_read else 0))
    second = Part(SESSION_ID, 8192, facts.end_position, True, at_ns + 301 * STEP_NS, end_ns)
    replace(facts, parts=[first, second]).write(document)
    found = invalid_packets_counted(Evidence(path), [run.traffic])
    assert [each.outcome for each in found if each.about == "b"] == [outcome]


def test_before_the_stream_is_known_nothing_need_be_counted(run):
    near = middle(run)
    first_ns = min(each.time_ns for each in run.packets["b"])
    payload = BROKEN["beyond its term"]
    run.packets["b"].append(Packet(first_ns - 1, "a", "b", near.ports, payload, near.kind))
    for value in (0, 1):
        run.values[INVALID] = value
        assert invalid(run)["b"].outcome is Outcome.PASS


def test_a_full_socket_may_have_dropped_it(run):
    arrive(run, BROKEN["misaligned"])
    run.rcvbuf_errors["b"] = 1
    assert invalid(run)["b"].outcome is Outcome.PASS


def test_a_run_without_over_runs_and_under_runs_counts_none(run):
    assert runs(run).outcome is Outcome.PASS
    for name, many in ((UNDER_RUNS, 1000), (OVER_RUNS, 1)):
        run.values[name] = many
        assert runs(run).outcome is Outcome.FAIL
        run.values[name] = 0


@pytest.mark.parametrize(
    ("position", "name", "other"),
    [(0, UNDER_RUNS, OVER_RUNS), (9 * TERM_LENGTH, OVER_RUNS, None)],
)
def test_over_runs_and_under_runs_must_be_counted(run, position, name, other):
    arrive(run, data(position))
    assert runs(run).outcome is Outcome.FAIL
    if other:
        run.values[other] = 1
        assert runs(run).outcome is Outcome.FAIL
        run.values[other] = 0
    run.values[name] = 1
    assert runs(run).outcome is Outcome.PASS


@pytest.mark.parametrize(("value", "outcome"), [(0, Outcome.FAIL), (1, Outcome.PASS)])
def test_an_over_run_of_a_session_of_a_killed_publisher_counts(run, value, outcome):
    arrive(run, data(8 * TERM_LENGTH))
    of_last_session = run.packets["b"][-1]
    add_earlier_session(run, 7)
    run.packets["b"].remove(of_last_session)
    run.values[OVER_RUNS] = value
    path = write_with_event(run, "kill", "a", "publisher", (1, 2))
    (finding,) = over_under_runs_counted(Evidence(path), [run.traffic])
    assert finding.outcome is outcome


def test_a_heartbeat_may_be_a_term_behind(run):
    near = middle(run)
    messages = [
        each for each in run.packets["b"] if each.kind == "SM" and each.time_ns < near.time_ns
    ]
    position = acknowledged_position(messages[-1])
    for at, outcome in ((position - TERM_LENGTH, Outcome.PASS), (0, Outcome.FAIL)):
        arrive(run, heartbeat(at))
        assert runs(run).outcome is outcome


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("later_ns", [0, 1])
def test_a_frame_just_before_its_acknowledgement_may_be_counted_or_not(run, value, later_ns):
    messages = [each for each in run.packets["b"] if each.kind == "SM"]
    next_message = messages[len(messages) // 2]
    frame = data(acknowledged_position(next_message) - 32, 32)
    packet = Packet(next_message.time_ns - later_ns, "a", "b", middle(run).ports, frame, "DATA")
    run.packets["b"].append(packet)
    run.values[UNDER_RUNS] = value
    assert runs(run).outcome is Outcome.PASS


@pytest.mark.parametrize("check", [over_under_runs_counted, invalid_packets_counted])
def test_missing_receivers_capture_is_inconclusive(run, check):
    path = run.write()
    run.folder.capture("b").unlink()
    found = check(Evidence(path), [run.traffic])
    assert Outcome.INCONCLUSIVE in {each.outcome for each in found}


@pytest.mark.parametrize("first", ["b", "c"])
def test_a_retransmit_for_one_reader_is_an_under_run_at_the_others(run, monkeypatch, first):
    join(run, monkeypatch, first=first)
    again = middle(run)
    early = [each for each in run.packets["a"] if each.kind == "DATA" and each.destination == "c"]
    # The first frame is sent again, to c and b, long after both have acknowledged it.
    for host in "bc":
        run.packets[host].append(replace(early[0], time_ns=again.time_ns + 1, destination=host))
    run.values[UNDER_RUNS] = 1
    for value, outcome in ((0, Outcome.FAIL), (1, Outcome.PASS), (10_000, Outcome.FAIL)):
        path = write(run, {12: value})
        at_b, at_c = over_under_runs_counted(Evidence(path), list(run.traffic.flows))
        assert (at_b.about, at_b.outcome) == ("b", Outcome.PASS)
        assert (at_c.about, at_c.outcome) == ("c", outcome)


def test_two_publishers_of_one_image_are_checked_together(run, monkeypatch):
    """Two publishers: frames of the second one go into the same image."""
    arrive(run, data(0))
    run.values[UNDER_RUNS] = 1
    evidence = Evidence(run.write())
    both = run.traffic.model_copy(update={"from_hosts": ("a", "a2")})
    case = run.case.model_copy(update={"traffic": (both,)})
    wire, subscriber = evidence.wire(run.traffic), evidence.subscriber(run.traffic)
    monkeypatch.setattr(evidence, "case", case)
    monkeypatch.setattr(evidence, "wire", lambda traffic: wire)
    monkeypatch.setattr(evidence, "subscriber", lambda traffic: subscriber)
    (finding,) = over_under_runs_counted(evidence, list(both.flows)[:1])
    assert finding.outcome is Outcome.PASS


def test_an_invalid_datagram_is_looked_for_at_every_reader(run, monkeypatch):
    join(run, monkeypatch, first="b")
    near = middle(run)
    run.packets["c"].append(
        Packet(near.time_ns + 1, "a", "c", near.ports, BROKEN["misaligned"], near.kind)
    )
    for value, outcome in ((0, Outcome.FAIL), (1, Outcome.PASS)):
        found = invalid_packets_counted(Evidence(write(run, {14: value})), list(run.traffic.flows))
        assert [each.outcome for each in found if each.about == "c"] == [outcome]
