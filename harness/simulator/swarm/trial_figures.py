"""The figures of a swarm trial, and how they differ between two drivers with the same seed.

    equal        all figures are equal
    timing       only figures differ that depend on when agents run, such as the number of SMs
    behaviour    other figures differ: what was delivered, repaired, requested or sent

The link's decisions depend on the identity of a frame, not on its time, so both drivers lose the
same frames at the first attempt.
"""

from __future__ import annotations

from collections.abc import Mapping

from windtunnel.driver.cnc import counters
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.harness.artifact.middlebox.frame_class import NAMES
from windtunnel.harness.middlebox.engine.state import FRAMES_IN
from windtunnel.harness.middlebox.rules import CLASSES
from windtunnel.harness.simulator.audit.stream_record import Audit
from windtunnel.harness.simulator.world.world import SimulatedWorld

EQUAL, TIMING, BEHAVIOUR = "equal", "timing", "behaviour"
TIMING_FIGURES = frozenset({"duration_us", "SM", "HEARTBEAT", "SETUP", "flow_control_under_runs"})
_COUNTERS = {
    "retransmits": system_counters.RETRANSMITS_SENT,
    "retransmitted_bytes": system_counters.RETRANSMITTED_BYTES,
    "flow_control_under_runs": system_counters.FLOW_CONTROL_UNDER_RUNS,
    "flow_control_over_runs": system_counters.FLOW_CONTROL_OVER_RUNS,
    "invalid_packets": system_counters.INVALID_PACKETS,
    "errors": system_counters.ERRORS,
}
_STREAM_FIELDS = ("position", "gap_filled", "corrupted")

Differences = dict[str, tuple[int, int]]
"""Name of a figure -> its value with each driver."""


def read_figures(world: SimulatedWorld, audit: Audit, began_ns: int) -> dict[str, int]:
    """Return the figures of a trial that has ended, by name."""
    found: dict[str, int] = {"duration_us": (world.now_ns - began_ns) // 1_000}
    sent = world.between.engine.frames[:, :, FRAMES_IN].sum(axis=0)
    for index, code in enumerate(CLASSES):
        if sent[index]:
            found[NAMES[code]] = int(sent[index])
    for name, counter_id in _COUNTERS.items():
        values = (counters.get(each.counter_values, counter_id) for each in world.hosts)
        found[name] = sum(int(each) for each in values)
    for field in _STREAM_FIELDS:
        found[field] = int(audit.streams[field].sum())
    return found


def compare(left: Mapping[str, int], right: Mapping[str, int]) -> Differences:
    """Return the figures that differ. A missing figure is 0."""
    names = sorted(left.keys() | right.keys())
    both = {name: (left.get(name, 0), right.get(name, 0)) for name in names}
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


def kind_of(differences: Differences) -> str:
    """Return the kind of the differences between two trials of the same seed."""
    if not differences:
        return EQUAL
    return TIMING if differences.keys() <= TIMING_FIGURES else BEHAVIOUR
