"""Streams that are observed without being named."""

from dataclasses import replace

import pytest

from tests.unit.harness.verdict.checks.observed import test_observed_streams
from tests.unit.harness.verdict.synthetic_log import synthetic_log
from tests.unit.harness.verdict.synthetic_run import (
    INITIAL_TERM_ID,
    PORT,
    SESSION_ID,
    STEP_NS,
    STREAM_ID,
    TERM_LENGTH,
)
from windtunnel.harness.artifact.host.log_index import LogFacts, read_log_index, write_log_index
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.dissect.frames import observed_flows
from windtunnel.harness.scenario.resolved.case import NO_PORTS
from windtunnel.harness.verdict.checks.observed import found_streams
from windtunnel.harness.verdict.checks.observed.found_streams import not_judged, observed_of
from windtunnel.harness.verdict.checks.observed.observed_streams import (
    observed_streams,
    unread_notes,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import judge
from windtunnel.harness.verdict.results.observed_rows import observed_rows

run = test_observed_streams.run


def test_a_case_that_observes_all_reads_all_ports(run):
    assert run.case.aeron_ports == (PORT,)
    assert run.case.model_copy(update={"traffic": (), "observed": ()}).aeron_ports == NO_PORTS
    assert run.case.model_copy(update={"observes_all": True}).aeron_ports == ()


def test_a_stream_is_found_by_its_setup_and_judged(run):
    path = run.write()
    case = run.case.model_copy(update={"observed": (), "traffic": (), "observes_all": True})
    case.write(run.folder.case)
    evidence = Evidence(path)
    (found,) = observed_of(evidence, case)
    assert (found.id, found.stream_id, found.from_host) == (f"stream-{STREAM_ID}", STREAM_ID, "a")
    assert (found.to_host, found.all_ports, found.found) == ("b", (PORT,), True)
    judged = {each.name: each for each in observed_streams(evidence)}
    assert judged["observed_data_arrived"].outcome is Outcome.PASS
    assert {each.about for each in judged.values()} == {f"stream-{STREAM_ID}"}
    assert "observed_data_arrived" in [each.name for each in judge(path).checks]


def replay(run, port):
    """Send the session once more to a port: its first frame and an end behind it."""
    for host in "ab":
        kinds = {each.kind: each for each in reversed(run.packets[host])}
        for step, kind in enumerate(("SETUP", "DATA", "HEARTBEAT")):
            packet = kinds[kind]
            payload = bytearray(packet.payload)
            if kind == "HEARTBEAT":
                payload[5] |= 0x20
                payload[8:12] = len(kinds["DATA"].payload).to_bytes(4, "little")
            time_ns = run.now_ns + (step + 1) * STEP_NS + (host == "b")
            ports = packet.ports[0] + 1, port
            run.packets[host].append(
                replace(packet, time_ns=time_ns, ports=ports, payload=bytes(payload))
            )


def judged_whole(run):
    """Return the findings about all streams of a run, which names none, and their rows."""
    case = run.case.model_copy(update={"observed": (), "traffic": (), "observes_all": True})
    path = run.write()
    case.write(run.folder.case)
    evidence = Evidence(path)
    return observed_streams(evidence), list(observed_rows(evidence, case))


def test_a_session_that_is_also_replayed_is_judged_for_each_port(run):
    """A replay that merges with its live stream has its session, and begins and ends elsewhere."""
    replay(run, PORT + 1)
    found, (live, replayed) = judged_whole(run)
    assert {each.outcome for each in found} == {Outcome.PASS}, found
    prefix = f"stream-{STREAM_ID} session {SESSION_ID} port"
    assert {each.about for each in found} == {f"{prefix} {PORT}", f"{prefix} {PORT + 1}"}
    assert (live.lost_frames, replayed.lost_frames) == (len(run.decisions), 0)
    assert (live.resent_frames, replayed.resent_frames) == (len(run.decisions), 0)
    # Its only frame arrives 1 ns after it was sent. What else the image gets is not its own.
    assert replayed.longest_silence_ns == 1


def test_publications_of_a_session_are_judged_one_after_the_other(run):
    replay(run, PORT)
    found, rows = judged_whole(run)
    assert {each.outcome for each in found} == {Outcome.PASS}, found
    name = f"stream-{STREAM_ID} publication"
    assert {each.about for each in found} == {f"{name} 1", f"{name} 2"}
    assert rows == []


def add_log(run, path, registration_id, *, end, begin=0):
    """Save the log of another publication of the session, with the frames from `begin` to `end`."""
    frames = [
        (position, run.frame_bytes(index))
        for index, position in enumerate(run.log.frames["position"].tolist())
        if begin <= position < end
    ]
    log = synthetic_log(
        frames, end=end, term_length=TERM_LENGTH, initial_term_id=INITIAL_TERM_ID,
        session_id=SESSION_ID, stream_id=STREAM_ID,
    )  # fmt: skip
    files = RunDir(path).host("a")
    files.log_buffer("publications", registration_id).write_bytes(log.tobytes())
    known = read_log_index(files.log_index)
    write_log_index(
        files.log_index, [*known, LogFacts("publications", registration_id, len(log), "")]
    )


@pytest.mark.parametrize("begin", [0, -1])
def test_the_log_of_a_later_replay_is_not_that_of_the_live_stream(run, begin):
    """A replay of the end of a stream has a log without its beginning, and perhaps its end."""
    end = run.log.end_position
    last = int(run.log.frames[-1]["position"])
    path = run.write()
    add_log(run, path, 99, end=last if begin == 0 else end, begin=begin and last)
    case = run.case.model_copy(update={"observed": (), "traffic": (), "observes_all": True})
    case.write(run.folder.case)
    found = {each.name: each for each in observed_streams(Evidence(path))}
    compared = found["image_log_equals_publication"]
    assert compared.outcome is Outcome.PASS
    assert compared.facts["to"] == end


def test_sessions_to_another_host_are_not_those_of_a_stream(run):
    setup = next(each for each in run.packets["a"] if each.kind == "SETUP")
    other = bytearray(setup.payload)
    other[12:16] = (SESSION_ID + 1).to_bytes(4, "little", signed=True)
    run.packets["a"].append(replace(setup, payload=bytes(other), destination="a"))
    case = run.case.model_copy(update={"observed": (), "traffic": (), "observes_all": True})
    path = run.write()
    case.write(run.folder.case)
    assert {each.about for each in observed_streams(Evidence(path))} == {f"stream-{STREAM_ID}"}


def test_a_stream_that_the_case_names_is_not_found_again(run):
    path = run.write()
    case = run.case.model_copy(update={"observes_all": True})
    assert observed_of(Evidence(path), case) == case.observed
    (seen,) = case.observed
    planned = case.model_copy(update={"observed": (), "traffic": (seen,)})
    assert observed_of(Evidence(path), planned) == ()


def test_streams_that_cannot_be_judged_are_named(run, monkeypatch):
    setup = next(each for each in run.packets["a"] if each.kind == "SETUP")
    other = bytearray(setup.payload)
    other[16:20] = (STREAM_ID + 1).to_bytes(4, "little")
    run.packets["a"].append(replace(setup, payload=bytes(other)))
    case = run.case.model_copy(update={"observed": (), "traffic": (), "observes_all": True})
    path = run.write()
    case.write(run.folder.case)
    assert len(observed_of(Evidence(path), case)) == 2
    for module in (found_streams, observed_flows):
        monkeypatch.setattr(module, "OBSERVED_MAX", 1)
    assert len(observed_of(Evidence(path), case)) == 1
    assert list(not_judged(Evidence(path), case)) == ["1 of 2 streams"]
    first = observed_streams(Evidence(path))[0]
    assert (first.outcome, first.about) == (Outcome.INCONCLUSIVE, "")
    assert "also have 1 of 2 streams" in first.text


def test_missing_data_without_naks_may_be_of_an_unreliable_stream(run):
    lost = test_observed_streams.data_packets(run, "b")[-1].payload
    run.packets["b"] = [each for each in run.packets["b"] if each.payload != lost]
    for packets in run.packets.values():
        packets[:] = [each for each in packets if each.kind != "NAK"]
    path = run.write()
    case = run.case.model_copy(update={"observed": (), "traffic": (), "observes_all": True})
    case.write(run.folder.case)
    found = {each.name: each for each in observed_streams(Evidence(path))}["observed_data_arrived"]
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "the stream may be unreliable: name it in `observe`" in found.text


def test_a_run_without_any_stream_is_not_passed(run):
    for host, packets in run.packets.items():
        run.packets[host] = [each for each in packets if each.kind != "SETUP"]
    case = run.case.model_copy(update={"observed": (), "traffic": (), "observes_all": True})
    path = run.write()
    case.write(run.folder.case)
    (found,) = observed_streams(Evidence(path))
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "have no SETUP from one host to another, expected at least one stream" in found.text
    assert list(unread_notes([found])) == [found.text]
    run.folder.capture("b").unlink()
    assert len(observed_streams(Evidence(path))) == 2
