"""Finds what differs first between the evidence of two simulated runs of one case.

    sound run    --+--> datagrams, counters, offers, deliveries, frames, logs, ...
    mutant's run --+        +--> the first Difference of each kind, the earliest first

Equal simulated runs have equal evidence, times included, so each difference is an effect of the
defect. What carries no time (final counters, logs, errors) comes after everything that does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from windtunnel.harness.artifact.run.simulation import Simulation
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.exam.evidence_kinds import KINDS
from windtunnel.harness.exam.shifted_evidence import SHIFT_MAX_NS, largest_shift_ns
from windtunnel.harness.scenario.resolved.case import Case

_NS_PER_MS = 1e6


@dataclass(frozen=True)
class Difference:
    """The first difference of one kind of evidence between a sound run and another run."""

    kind: str
    place: str
    "The host, and the file or counter where one host has several."
    time_ns: int | None
    "Time since the publishers began, or None if this kind of evidence has no times."
    sound: str
    found: str
    shift_ns: int | None = None
    """The largest difference between the times of equal events if the runs differ in nothing else,
    and it is at most SHIFT_MAX_NS.
    """

    def __str__(self) -> str:
        when = "" if self.time_ns is None else f" at {self.time_ns / _NS_PER_MS:.6f} ms"
        return f"{self.kind}{when}, {self.place}: expected {self.sound}, found {self.found}"


def differences(sound: RunDir, other: RunDir) -> list[Difference]:
    """Return the first difference of each kind of evidence, the earliest first. The list is empty
    if the runs are equal.
    """
    case = Case.read(sound.case)
    simulation = Simulation.read(sound.simulation)
    start_ns = simulation.traffic_started_ns if simulation else 0
    found = []
    for kind, compare in KINDS.items():
        places = list(compare(sound, other, case))
        if places:
            place, time_ns, one, two = min(places, key=lambda each: _order(each.time_ns))
            since_ns = None if time_ns is None else time_ns - start_ns
            found.append(Difference(kind, place, since_ns, one, two))
    shift_ns = largest_shift_ns(sound, other) if found else None
    if shift_ns is not None and shift_ns <= SHIFT_MAX_NS:
        found = [replace(each, shift_ns=shift_ns) for each in found]
    return sorted(found, key=lambda each: _order(each.time_ns))


def _order(time_ns: int | None) -> tuple[bool, int]:
    return time_ns is None, time_ns or 0
