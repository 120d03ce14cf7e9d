"""Sessions of a stream that the scenario names, at several ports and one after the other."""

import struct
from dataclasses import replace

import pytest

from tests.unit.harness.verdict.checks.observed import test_observed_streams
from tests.unit.harness.verdict.checks.observed.test_found_streams import replay
from tests.unit.harness.verdict.synthetic_run import PORT, SESSION_ID, STEP_NS, STREAM_ID
from windtunnel.harness.scenario.resolved.traffic_case import StreamLimitsCase
from windtunnel.harness.verdict.checks.observed.observed_streams import observed_streams
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

run = test_observed_streams.run
TERMS = 1_000
"""The difference of the initial term ids of two publications."""


def judged(run, **changes):
    """Return the findings about the streams, all of whose ports are read."""
    path = run.write()
    run.case.model_copy(update={"traffic": (), "observes_all": True, **changes}).write(
        run.folder.case
    )
    return observed_streams(Evidence(path))


def outcomes(found):
    return {each.outcome for each in found if each.name != "observed_goodput"}


def test_a_replay_to_another_port_is_no_retransmit(run):
    replay(run, PORT + 1)
    found = judged(run)
    assert outcomes(found) == {Outcome.PASS}, found
    prefix = f"seen session {SESSION_ID} port"
    assert {each.about for each in found} == {f"{prefix} {PORT}", f"{prefix} {PORT + 1}"}
    # The channel, and so the flow control, of the replay is unknown.
    windows = [each.about for each in found if each.name == "sends_within_window"]
    assert windows == [f"{prefix} {PORT}"]


def test_the_limits_of_a_stream_are_those_of_its_channel(run):
    replay(run, PORT + 1)
    (seen,) = run.case.observed
    limits = StreamLimitsCase(least_bytes_per_s=1)
    found = judged(run, observed=(seen.model_copy(update={"limits": limits}),))
    limited = [each.about for each in found if each.name == "observed_goodput"]
    assert limited == [f"seen session {SESSION_ID} port {PORT}"]


def test_a_later_publication_of_the_session_is_no_retransmit(run):
    replay(run, PORT)
    found = judged(run)
    assert outcomes(found) == {Outcome.PASS}, found
    assert {each.about for each in found} == {"seen publication 1", "seen publication 2"}


def start_again(run):
    """Let a publication of the same session follow, with another initial term id."""
    for host in "ab":
        kinds = {each.kind: each for each in reversed(run.packets[host])}
        for step, kind in enumerate(("SETUP", "DATA")):
            payload = bytearray(kinds[kind].payload)
            for at in (20, 24) if kind == "SETUP" else (20,):
                (term,) = struct.unpack_from("<i", payload, at)
                struct.pack_into("<i", payload, at, term + TERMS)
            time_ns = run.now_ns + (step + 1) * STEP_NS + (host == "b")
            later = replace(kinds[kind], time_ns=time_ns, payload=bytes(payload))
            run.packets[host].append(later)


@pytest.mark.parametrize("is_named", [True, False])
def test_a_publication_with_another_initial_term_id_has_positions_of_its_own(run, is_named):
    """The driver was killed, so that the first one did not signal its end."""
    for host in "ab":
        run.packets[host] = [each for each in run.packets[host] if each.kind != "HEARTBEAT"]
    start_again(run)
    found = judged(run, **({} if is_named else {"observed": ()}))
    name = "seen" if is_named else f"stream-{STREAM_ID}"
    assert {each.about for each in found} == {f"{name} publication 1", f"{name} publication 2"}
    first = {each.name: each for each in found if each.about.endswith("1")}
    assert first["retransmits_only_if_asked"].outcome is Outcome.PASS
    assert first["naks_only_for_gaps"].facts["naks"] > 0
    assert {each.outcome for each in first.values()} == {Outcome.PASS}, first
    second = {each.name: each for each in found if each.about.endswith("2")}
    assert second["observed_streams"].text.startswith("1 frame of session ")


def test_a_session_to_another_host_only_is_not_that_of_the_stream(run):
    setup = next(each for each in run.packets["a"] if each.kind == "SETUP")
    other = bytearray(setup.payload)
    other[12:16] = (SESSION_ID + 1).to_bytes(4, "little", signed=True)
    run.packets["a"].insert(0, replace(setup, payload=bytes(other), destination="a"))
    assert {each.about for each in judged(run)} == {"seen"}
