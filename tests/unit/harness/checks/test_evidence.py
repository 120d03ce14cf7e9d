"""The evidence that own checks get equals the content of the run folder."""

import pytest

from tests.unit.harness.verdict.synthetic_run import (
    ADDRESS,
    INITIAL_TERM_ID,
    PORT,
    SEED,
    SENDER_PORT,
    SESSION_ID,
    STREAM_ID,
    TERM_LENGTH,
    TRAFFIC,
    WINDOW,
    make_run,
)
from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.artifact.middlebox.frame_class import NAMES
from windtunnel.harness.checks import Evidence, EvidenceMissing, Stream
from windtunnel.harness.checks.evidence import LINE_BYTES_MAX
from windtunnel.harness.checks.frame import address_text
from windtunnel.harness.dissect.capture.pcap import address_halves
from windtunnel.harness.scenario.applications.application_case import ApplicationCase
from windtunnel.harness.scenario.schema.host_event import EventCase


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    made = make_run(tmp_path_factory.mktemp("runs") / "one")
    made.write()
    return made


@pytest.fixture(scope="module")
def evidence(run):
    return Evidence(run.path)


def test_has_the_facts_of_the_run(evidence, run):
    assert (evidence.scenario, evidence.seed, evidence.fidelity) == (run.case.name, SEED, "netns")
    assert evidence.hosts == ("a", "b")
    assert evidence.run_dir == run.path
    assert evidence.streams == (Stream(TRAFFIC, STREAM_ID, ("a",), ("b",), is_observed=False),)


def test_has_all_frames_of_a_capture_in_their_order(evidence, run):
    seen = list(evidence.frames("a"))
    packets = sorted(run.packets["a"], key=lambda each: each.time_ns)
    assert [each.time_ns for each in seen] == [each.time_ns for each in packets]
    assert [each.source for each in seen] == [each.source for each in packets]
    assert [each.destination for each in seen] == [each.destination for each in packets]
    assert {each.type for each in seen} == {"SETUP", "DATA", "PAD", "HEARTBEAT", "SM", "NAK"}
    assert {each.session_id for each in seen} == {SESSION_ID}
    assert {each.source_port for each in seen if each.source == "a"} == {SENDER_PORT}
    assert {each.destination_port for each in seen if each.source == "a"} == {PORT}


def test_has_positions_and_payloads(evidence, run):
    sent = [each for each in evidence.frames("a", source="a") if each.type in ("DATA", "PAD")]
    first: dict[int, object] = {}
    for frame in sent:
        first.setdefault(frame.position, frame)
    assert list(first) == run.log.frames["position"].tolist()
    for index, frame in enumerate(first.values()):
        assert frame.payload == run.frame_payload(index)
        assert frame.length == run.log.frames["frame_length"][index]
        assert frame.type == NAMES[run.log.frames["frame_type"][index]]
        terms = frame.term_id - INITIAL_TERM_ID
        assert frame.position == terms * TERM_LENGTH + frame.term_offset


def test_selects_frames(evidence):
    naks = list(evidence.frames("b", type="NAK"))
    everything = list(evidence.frames("b"))
    assert naks == [each for each in everything if each.type == "NAK"]
    assert naks
    assert {(each.source, each.destination) for each in naks} == {("b", "a")}
    assert all(each.nak_length > 0 and each.position % 32 == 0 for each in naks)
    assert {each.window_bytes for each in evidence.frames("b", type="SM")} == {WINDOW}
    assert list(evidence.frames("b", source="a", destination="a")) == []
    assert list(evidence.frames("b", stream_id=STREAM_ID + 1)) == []
    assert list(evidence.frames("b", session_id=SESSION_ID)) == everything
    arrived = list(evidence.frames("b", source="a", type="DATA"))
    assert len(arrived) < len(list(evidence.frames("a", source="a", type="DATA")))


def test_has_the_decisions_of_rules(evidence, run):
    found = list(evidence.decisions())
    assert len(found) == len(run.decisions) > 0
    assert {(each.action, each.source, each.destination) for each in found} == {("drop", "a", "b")}
    (rule,) = {each.rule for each in found}
    assert found == list(evidence.decisions(rule))
    arrived = {each.position for each in evidence.frames("b", source="a", type="DATA")}
    sent = {each.position for each in evidence.frames("a", source="a", type="DATA")}
    assert {each.position for each in found} <= sent
    assert arrived <= sent


def test_has_counters_over_time(evidence, run):
    counters = {each.type_id: each for each in evidence.counters("a")}
    position = counters[2]
    expected = [(at, value) for at, name, value in run.samples["a"] if name == "snd-pos"]
    assert list(position.samples()) == expected
    assert position.final_value == expected[-1][1]
    assert len(position.key) == 112
    assert position.id == 50


def test_has_the_figures_of_streams(evidence, run):
    (row,) = evidence.results()
    assert (row.traffic, row.to_host) == (TRAFFIC, "b")
    assert row.delivered_messages == run.plan.count


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda each: list(each.frames("c")), r"expected a host \(a, b\), found 'c'"),
        (lambda each: list(each.frames("a", source="c")), "expected a host"),
        (lambda each: list(each.frames("a", type="data")), "expected one of the types PAD, DATA"),
        (lambda each: list(each.decisions("nope")), "expected a rule of the scenario"),
        (lambda each: each.counters("c"), "expected a host"),
        (lambda each: list(each.log_lines("x")), r"application of the scenario \(it has none\)"),
    ],
)
def test_names_that_are_not_in_the_scenario_are_errors(evidence, ask, text):
    with pytest.raises(ValueError, match=text):
        ask(evidence)


def test_missing_evidence_is_named(tmp_path):
    run = make_run(tmp_path / "run")
    run.write()
    run.folder.capture("b").unlink()
    run.folder.decisions.write_bytes(b"torn")
    evidence = Evidence(run.path)
    with pytest.raises(EvidenceMissing, match=r"captures/b.pcap: is missing") as raised:
        list(evidence.frames("b"))
    assert not raised.value.damaged
    with pytest.raises(EvidenceMissing, match=r"decisions\.bin: is truncated") as raised:
        list(evidence.decisions())
    assert raised.value.damaged
    with pytest.raises(EvidenceMissing, match=r"case.json"):
        _ = Evidence(tmp_path / "nothing").hosts


def test_a_capture_without_setup_has_no_positions(tmp_path):
    run = make_run(tmp_path / "run")
    for packets in run.packets.values():
        packets[:] = [each for each in packets if each.kind != "SETUP"]
    run.write()
    assert {each.position for each in Evidence(run.path).frames("a")} == {None}


def test_has_logs_and_events(tmp_path):
    run = make_run(tmp_path / "run")
    one = ApplicationCase(id="one", host="b", command=("x",), stop_within_ns=1)
    event = EventCase(
        id="cut", host="b", process="driver", trigger="after", at=1, action="partition", lasts_ns=1
    )
    run.case = run.case.model_copy(update={"applications": (one,), "events": (event,)})
    run.write()
    log = run.folder.host("b").application("one").log
    evidence = Evidence(run.path)
    with pytest.raises(EvidenceMissing, match=r"application-one\.log: No such file"):
        list(evidence.log_lines("one"))
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"ready\r\n\xff\n" + b"x" * (LINE_BYTES_MAX + 1) + b"\nlast")
    lines = list(evidence.log_lines("one"))
    assert lines[:2] == ["ready", "\ufffd"]
    assert [len(each) for each in lines[2:]] == [LINE_BYTES_MAX, 1, 4]
    write_applied_events(run.folder.host_events, [AppliedEvent("cut", "b", "partition", [], 5, 9)])
    (found,) = evidence.events()
    assert (found.id, found.host, found.action) == ("cut", "b", "partition")
    assert (found.began_ns, found.ended_ns) == (5, 9)


@pytest.mark.parametrize("text", [*ADDRESS.values(), "224.0.1.1", "fe80::1", "2001:db8::ffff"])
def test_addresses_are_written_as_usual(text):
    assert address_text(*address_halves(text)) == text
