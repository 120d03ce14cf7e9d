"""Sessions of a restarted publisher, and images of a session that follow one another."""

import struct
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_events import add_earlier_session, write_with_event
from tests.unit.harness.verdict.synthetic_group import C_ADDRESS
from tests.unit.harness.verdict.synthetic_run import (
    SESSION_ID,
    TRAFFIC,
    Packet,
    SyntheticRun,
    make_run,
    place,
    setup_frame,
    status_message,
)
from windtunnel.harness.artifact.host.application import Part, SubscriberFacts
from windtunnel.harness.scenario.resolved.case import HostCase
from windtunnel.harness.verdict.checks.counters.positions import (
    rcv_hwm_from_wire,
    rcv_pos_monotonic,
)
from windtunnel.harness.verdict.checks.flow_control.status_message_checks import (
    status_messages_backed,
)
from windtunnel.harness.verdict.checks.retransmission.nak_checks import naks_only_for_gaps
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.views.sessions import joins_of, sessions_sent

CHECKS = (status_messages_backed, rcv_pos_monotonic, naks_only_for_gaps)
LOST = 100
"""Index of a DATA frame that no image received."""


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def setup(position: int) -> bytes:
    frame = bytearray(setup_frame())
    term_id, term_offset = place(position)
    struct.pack_into("<i", frame, 8, term_offset)
    struct.pack_into("<i", frame, 24, term_id)
    return bytes(frame)


def rejoined(run, arrives: bool, join: int | None = None) -> Evidence:
    """Return the evidence of a run in which one frame arrived at no image, if not `arrives`. The
    second image joins after it, or at another position.
    """
    gone = run.frame_bytes(LOST)
    lost = [each for each in run.packets["b"] if each.payload == gone]
    if not arrives:
        run.packets["b"] = [each for each in run.packets["b"] if each.payload != gone]
    join = run.frame_end(LOST) if join is None else join
    asked = Packet(lost[0].time_ns, "a", "b", lost[0].ports, setup(join), "SETUP")
    run.packets["b"].append(asked)
    path = run.write()
    document = run.folder.host("b").subscriber(TRAFFIC).document
    facts = SubscriberFacts.read(document)
    assert facts is not None
    start = int(run.log.frames["position"][LOST])
    first = Part(SESSION_ID, 0, start, False, 0, lost[0].time_ns)
    second = Part(SESSION_ID, join, facts.end_position, True, lost[0].time_ns + 9, run.now_ns)
    replace(facts, join_position=join, parts=[first, second]).write(document)
    return Evidence(path)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(
    ("arrives", "later", "outcome"),
    [(True, 0, Outcome.PASS), (False, 0, Outcome.PASS), (False, -32, Outcome.FAIL)],
)
def test_an_image_need_not_receive_what_precedes_it(run, check, arrives, later, outcome):
    evidence = rejoined(run, arrives, run.frame_end(LOST) + later)
    finding = judged(check, evidence, run.traffic)
    assert finding.outcome is outcome, finding.text


def test_an_image_joins_with_the_first_setup_of_its_position(run):
    evidence = rejoined(run, arrives=False)
    wire = evidence.wire(run.traffic)
    setups_ns = [each.time_ns for each in run.packets["b"] if each.kind == "SETUP"]
    expected = [(0, 0), (setups_ns[-1], run.frame_end(LOST))]
    assert joins_of(evidence, run.traffic, wire)[1:] == expected[1:]


@pytest.mark.parametrize("check", [*CHECKS, rcv_hwm_from_wire])
@pytest.mark.parametrize(("is_group", "outcome"), [(True, Outcome.PASS), (False, Outcome.FAIL)])
def test_a_receiver_of_a_group_may_join_late(run, check, is_group, outcome):
    """The rcv-pos that it has then is the position of the SETUP, and nothing arrived before."""
    position, lost = run.frame_end(LOST), run.frame_bytes(LOST)
    at_ns = next(each.time_ns for each in run.packets["b"] if each.payload == lost)
    run.packets["b"] = [
        each
        for each in run.packets["b"]
        if (each.time_ns > at_ns and each.payload != lost) or each.kind == "SETUP"
    ]
    join = Packet(at_ns, "a", "b", run.packets["a"][0].ports, setup(position), "SETUP")
    run.packets["b"].append(join)
    for name in ("rcv-hwm", "rcv-pos", "sub-pos", "rcv-naks-sent"):
        own = [each for each in run.samples["b"] if each[1] == name and each[0] > at_ns]
        run.samples["b"] = [each for each in run.samples["b"] if each[1] != name] + own
    run.samples["b"] = [
        (at_ns + after_ns, name, position)
        for name in ("rcv-hwm", "rcv-pos", "sub-pos")
        for after_ns in (1, 2)
    ] + run.samples["b"]
    message = next(each for each in run.packets["b"] if each.kind == "SM")
    early = replace(message, time_ns=at_ns + 1, payload=status_message(position))
    run.packets["b"].append(early)
    if is_group:
        stream = run.traffic.model_copy(update={"to_hosts": ("b", "c")})
        hosts = (*run.case.hosts, HostCase(name="c", address=C_ADDRESS))
        run.case = run.case.model_copy(update={"traffic": (stream,), "hosts": hosts})
    path = run.write()
    document = run.folder.host("b").subscriber(TRAFFIC).document
    facts = SubscriberFacts.read(document)
    assert facts is not None
    replace(facts, join_position=position).write(document)
    finding = judged(check, Evidence(path), run.traffic)
    assert finding.outcome is outcome, finding.text


def test_a_stream_that_does_not_rejoin_has_no_later_images(run):
    evidence = Evidence(run.write())
    assert joins_of(evidence, run.traffic, evidence.wire(run.traffic)) == []


@pytest.mark.parametrize(("process", "found"), [("publisher", [SESSION_ID, 7]), ("driver", [None])])
def test_each_session_of_a_restarted_publisher_is_found(run, process, found):
    add_earlier_session(run, 7)
    evidence = Evidence(write_with_event(run, "kill", "a", process, (1, 2)))
    flows = sessions_sent(evidence, run.traffic)
    assert [each.session_id for each in flows] == found
    if process == "publisher":
        times_ns = [evidence.wire(each).sent.frames["time_ns"] for each in flows]
        assert len(times_ns[0]) == len(times_ns[1])
        assert np.all(times_ns[1] < times_ns[0].min())
