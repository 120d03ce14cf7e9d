"""Whether a run stood still when its budget was over though no host lacked anything.

    positions move ---|                                       budget over
    a host is pressed       |---|                                  |
    a host is paused     |---|  |<------------- calm ------------->|

A slow host makes a stream slow, or cuts it off for as long as a time-out takes; it does not keep it
still once all have their time again. So no slow host excuses a calm that is longer.
"""

from collections.abc import Iterator

import numpy as np

from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.gates.overload import PHASE, short_of_time

CALM_NS = 15_000_000_000
"""Half as long again as the longest of Aeron's time-outs, after which a stream that was cut off
knows it; besides what the scenario itself asks for."""
LOOK_NS = 1_000_000_000
"""So much earlier the last look of a host's sampler may be than the end of the traffic."""
POSITIONS = (
    counter_key.SENDER_POSITION,
    counter_key.RECEIVER_HWM,
    counter_key.SUBSCRIBER_POSITION,
    counter_key.RECEIVER_POSITION,
    counter_key.PUBLISHER_POSITION,
)
FIRST_OF_ARCHIVES = 100
"""Type ids of an archive's counters begin here; any of them shows that it is at work."""


def calm_ns(evidence: Evidence) -> int:
    """How long nothing had moved and no host was pressed when the traffic was ended.

    0 where that is no longer than a sound subject may take, or where the evidence does not tell.
    """
    manifest, case = evidence.manifest, evidence.case
    if isinstance(manifest, Missing) or isinstance(case, Missing) or not manifest.phases:
        return 0
    ended_ns = _ended_ns(manifest)
    last_ns = 0
    for times_ns in (_moved(evidence, case), _pressed(evidence, case, ended_ns), _befell(evidence)):
        if times_ns is None:
            return 0
        last_ns = max(last_ns, *times_ns)
    calm = ended_ns - last_ns
    return calm if calm > CALM_NS + max(_rests_ns(case)) else 0


def _ended_ns(manifest: Manifest) -> int:
    """When the traffic was; what follows it is no part of the stream."""
    traffic = [each for each in manifest.phases if each.name == PHASE]
    return (traffic or manifest.phases)[-1].ended_ns


def _moved(evidence: Evidence, case: Case) -> list[int] | None:
    """When a position last moved on each host."""
    times_ns = []
    for host in case.hosts:
        counted = evidence.counted(host.name)
        if isinstance(counted, Missing):
            return None
        types = counted.samples["type_id"]
        moves = counted.samples[np.isin(types, POSITIONS) | (types >= FIRST_OF_ARCHIVES)]
        if len(moves) == 0:
            return None
        times_ns.append(int(moves["time_ns"].max()))
    return times_ns


def _pressed(evidence: Evidence, case: Case, ended_ns: int) -> list[int] | None:
    """When each host was last pressed; 0 for one that never was."""
    times_ns = []
    for host in case.hosts:
        rows = evidence.pressure(host.name)
        if isinstance(rows, Missing) or len(rows.rows) < 2:
            return None
        looks_ns = rows.column("time_ns")
        if looks_ns[-1] < ended_ns - LOOK_NS:
            return None
        times_ns.append(int(looks_ns[1:][short_of_time(rows)].max(initial=0)))
    return times_ns


def _befell(evidence: Evidence) -> list[int] | None:
    """When each event was over, or None where one never was."""
    happened = evidence.host_events
    if isinstance(happened, Missing) or any(not each.ended_ns for each in happened):
        return None
    return [0, *(each.ended_ns for each in happened)]


def _rests_ns(case: Case) -> Iterator[int]:
    """How long the scenario itself lets a stream rest, for one reason or another."""
    yield from (case.timeouts.image_liveness_ns, case.timeouts.client_liveness_ns)
    yield case.timeouts.driver_ns
    for fault in case.faults:
        yield fault.hold_ns
        yield 0 if fault.when is None else fault.when.for_ns
    for traffic in case.traffic:
        yield traffic.close_after_ns
        for pace in (traffic.pace, traffic.consume):
            yield pace.rest_ns + pace.least_ns(traffic.longest_bytes)
