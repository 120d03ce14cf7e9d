"""Gaps that a receiver may fill only after a number of later datagrams, or after a delay."""

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.harness.verdict.synthetic_loss import let_arrive
from tests.unit.harness.verdict.synthetic_run import SyntheticRun, heartbeat, make_run
from windtunnel.harness.artifact.middlebox.decision import CORRUPT, DISPLACE
from windtunnel.harness.artifact.run.manifest import SubjectFacts
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.views.coverage import pad_only_where_lost
from windtunnel.harness.verdict.views.fill_evidence import (
    DATAGRAMS_SETTING,
    DELAY_SETTING,
    SLACK_NS,
    FillRule,
    arrived_in_time,
)

MS = 1_000_000
DATAGRAMS, DELAY = "|windtunnel.gap-fill-datagrams=", "|windtunnel.gap-fill-delay="


def run_with(path, more: str) -> SyntheticRun:
    """Return an unreliable run whose subscriber has more channel parameters."""
    run = make_run(path, reliable=False)
    (traffic,) = run.case.traffic
    changed = traffic.model_copy(update={"receive": traffic.receive + more})
    run.case = run.case.model_copy(update={"traffic": (changed,)})
    return run


def padded(run):
    return pad_only_where_lost(Evidence(run.write()), run.traffic)


def later_datagrams(run, position):
    """Return the datagrams that were sent after a frame, in the order of their arrival."""
    (index,) = np.flatnonzero(run.log.frames["position"] == position)
    sent = next(each for each in run.packets["a"] if each.payload == run.frame_bytes(int(index)))
    found = [each for each in run.packets["b"] if each.kind in ("DATA", "PAD")]
    return [each for each in found if each.time_ns > sent.time_ns]


def overtake(run, count, action=DISPLACE, at=4):
    """Let a dropped frame arrive after `count` later datagrams. Returns its position."""
    row = list(run.decisions[at])
    row[2] = action
    run.decisions[at] = tuple(row)
    came = let_arrive(run, row[12])
    came.time_ns = later_datagrams(run, row[12])[count - 1].time_ns + 1
    return row[12]


@pytest.mark.parametrize(
    ("more", "count", "outcome"),
    [
        ("", 1, Outcome.PASS),
        (f"{DATAGRAMS}0{DELAY}0", 1, Outcome.PASS),
        (f"{DATAGRAMS}1", 1, Outcome.PASS),
        (f"{DATAGRAMS}4", 4, Outcome.PASS),
        (f"{DATAGRAMS}4", 3, Outcome.FAIL),
        (f"{DATAGRAMS}4", 1, Outcome.FAIL),
        (f"{DATAGRAMS}4{DELAY}1ms", 3, Outcome.PASS),
    ],
)
def test_a_pad_over_a_frame_that_arrived_before_the_evidence(tmp_path, more, count, outcome):
    run = run_with(tmp_path, more)
    position = overtake(run, count)
    finding = padded(run)
    assert finding.outcome is outcome
    if outcome is Outcome.FAIL:
        assert finding.position == position
        assert "arrived before 4 later datagrams, or 100ms after its gap appeared" in finding.text


@pytest.mark.parametrize(("more_ns", "outcome"), [(0, Outcome.FAIL), (1, Outcome.PASS)])
def test_a_frame_that_arrived_just_before_the_delay_is_tolerated(tmp_path, more_ns, outcome):
    run = run_with(tmp_path, f"{DELAY}20ms")
    position = overtake(run, 1)
    (came,) = [each for each in run.packets["b"] if each.time_ns % 1_000 == 1]
    came.time_ns = later_datagrams(run, position)[0].time_ns + 20 * MS - SLACK_NS - 1 + more_ns
    assert padded(run).outcome is outcome


@pytest.mark.parametrize(
    ("driver", "settings", "outcome"),
    [
        ("ours", {DATAGRAMS_SETTING: "4"}, Outcome.FAIL),
        ("ours", {DELAY_SETTING: "100ms"}, Outcome.FAIL),
        ("ours", {}, Outcome.PASS),
        ("pyaeron", {DATAGRAMS_SETTING: "4"}, Outcome.PASS),
    ],
)
def test_a_setting_of_the_driver_counts_unless_the_driver_is_aerons(
    tmp_path, driver, settings, outcome
):
    run = run_with(tmp_path, "")
    run.manifest.subjects = {"b": SubjectFacts("subscriber", driver, "1.53", settings)}
    overtake(run, 2)
    assert padded(run).outcome is outcome


def test_other_drivers_are_judged_by_aerons_rule(tmp_path):
    run = run_with(tmp_path, f"{DATAGRAMS}4")
    run.manifest.subjects = {"b": SubjectFacts("subscriber", "java", "1.53", {})}
    overtake(run, 2)
    assert padded(run).outcome is Outcome.PASS


def test_a_frame_that_was_damaged_need_not_be_kept(tmp_path):
    run = run_with(tmp_path, f"{DATAGRAMS}4")
    overtake(run, 2, CORRUPT)
    assert padded(run).outcome is Outcome.PASS


def test_a_heartbeat_beyond_the_gap_is_a_later_datagram(tmp_path):
    run = run_with(tmp_path, f"{DATAGRAMS}2")
    position = overtake(run, 1)
    assert padded(run).outcome is Outcome.FAIL
    first = later_datagrams(run, position)[0]
    (index,) = np.flatnonzero(run.log.frames["position"] == position)
    beat = heartbeat(run.frame_end(int(index) + 2))
    # At equal times the heartbeat counts as first.
    came = replace(first, time_ns=first.time_ns + 1, payload=beat, kind="HEARTBEAT")
    run.packets["b"].append(came)
    assert padded(run).outcome is Outcome.PASS


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("datagrams", [0, 1, 2, 5])
def test_agrees_with_a_plain_computation_from_the_arrivals(tmp_path, seed, datagrams):
    run = run_with(tmp_path, "")
    rng = random.Random(seed)
    for each in run.packets["b"]:
        if each.kind in ("DATA", "PAD", "HEARTBEAT") and rng.random() < 0.3:
            each.time_ns += rng.randrange(12 * MS)
    evidence = Evidence(run.write())
    wire, planned = evidence.wire(run.traffic), evidence.planned(run.traffic)
    rule = FillRule(datagrams, 9 * MS)
    found = arrived_in_time(wire, planned.log, 0, rule)
    positions = planned.log.frames["position"].tolist()
    arrivals = [
        *zip(wire.heartbeat_times_ns.tolist(), wire.heartbeat_positions.tolist(), strict=True)
    ]
    frames = zip(
        wire.arrived.frames["time_ns"].tolist(),
        wire.arrived.starts.tolist(),
        wire.arrived.ends.tolist(),
        strict=True,
    )
    events = [(time_ns, 0, -1, top) for time_ns, top in arrivals]
    events += [(time_ns, 1, start, end) for time_ns, start, end in frames]
    events.sort(key=lambda event: event[:2])
    expected = set()
    shown, top = {}, 0
    for time_ns, _, start, end in events:
        if end > top:
            for position in positions:
                if position < end:
                    first_ns, count = shown.get(position, (time_ns, 0))
                    shown[position] = first_ns, count + 1
            top = end
            own = 1
        else:
            own = 0
        if start >= 0:
            first_ns, count = shown[start]
            is_enough = datagrams and count - own >= datagrams
            if not is_enough and time_ns - first_ns < rule.delay_ns - SLACK_NS:
                expected.add(start)
    assert {positions[index] for index in np.flatnonzero(found)} == expected
    assert 0 < len(expected) < len(positions)
