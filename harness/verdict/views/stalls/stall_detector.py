"""Detects stalls: streams that make no progress although no host is overloaded.

    positions move ---|                                       budget exceeded
    a host is overloaded    |---|                                  |
    a host is paused     |---|  |<------------ stall ------------->|

A slow host slows a stream down, or disconnects it for the length of a timeout, but does not block
it once all hosts have processor time again. So an overloaded host does not excuse a longer stall.
"""

from collections.abc import Iterator

import numpy as np

from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.gates.overload import PHASE, overloaded_intervals

STALL_NS_MIN = 15_000_000_000
"""Minimum duration of a stall: 1.5 times the longest timeout after which Aeron detects that a
stream is disconnected. Pauses that the scenario specifies are added to it."""
SAMPLE_AGE_NS_MAX = 1_000_000_000
"""Maximum time between a host's last sample and the end of the traffic phase."""
POSITIONS = (
    counter_key.SENDER_POSITION,
    counter_key.RECEIVER_HWM,
    counter_key.SUBSCRIBER_POSITION,
    counter_key.RECEIVER_POSITION,
    counter_key.PUBLISHER_POSITION,
)
ARCHIVE_TYPE_ID_MIN = 100
"""Lowest type id of an archive's counters. A change of any of them shows progress."""


def stall_ns(evidence: Evidence) -> int:
    """Return how long the traffic had stalled when it ended, in nanoseconds.

    The result is 0 if a correct subject may pause for that long, if an overloaded host may be the
    cause, or if evidence is missing.
    """
    manifest, case = evidence.manifest, evidence.case
    if isinstance(manifest, Missing) or isinstance(case, Missing) or not manifest.phases:
        return 0
    ended_ns = _ended_ns(manifest)
    last_ns = 0
    for times_ns in (
        _last_progress_ns(evidence, case),
        _last_overload_ns(evidence, case, ended_ns),
        _event_ends_ns(evidence),
    ):
        if times_ns is None:
            return 0
        last_ns = max(last_ns, *times_ns)
    still_ns = ended_ns - last_ns
    return still_ns if still_ns > STALL_NS_MIN + max(_allowed_pauses_ns(case)) else 0


def _ended_ns(manifest: Manifest) -> int:
    """Return the end of the traffic phase, or of the last phase if there is no traffic phase."""
    traffic = [each for each in manifest.phases if each.name == PHASE]
    return (traffic or manifest.phases)[-1].ended_ns


def _last_progress_ns(evidence: Evidence, case: Case) -> list[int] | None:
    """Return the time at which a position last moved on each host, or None if unknown."""
    times_ns = []
    for host in case.hosts:
        counted = evidence.host_counters(host.name)
        if isinstance(counted, Missing):
            return None
        types = counted.samples["type_id"]
        moves = counted.samples[np.isin(types, POSITIONS) | (types >= ARCHIVE_TYPE_ID_MIN)]
        if len(moves) == 0:
            return None
        times_ns.append(int(moves["time_ns"].max()))
    return times_ns


def _last_overload_ns(evidence: Evidence, case: Case, ended_ns: int) -> list[int] | None:
    """Return the time at which each host was last overloaded (0: never), or None if unknown."""
    times_ns = []
    for host in case.hosts:
        rows = evidence.pressure(host.name)
        if isinstance(rows, Missing) or len(rows.rows) < 2:
            return None
        looks_ns = rows.column("time_ns")
        if looks_ns[-1] < ended_ns - SAMPLE_AGE_NS_MAX:
            return None
        times_ns.append(int(looks_ns[1:][overloaded_intervals(rows)].max(initial=0)))
    return times_ns


def _event_ends_ns(evidence: Evidence) -> list[int] | None:
    """Return the end times of all host events, or None if one is unknown."""
    happened = evidence.host_events
    if isinstance(happened, Missing) or any(not each.ended_ns for each in happened):
        return None
    return [0, *(each.ended_ns for each in happened)]


def _allowed_pauses_ns(case: Case) -> Iterator[int]:
    """Yield the durations for which the scenario allows a stream to pause."""
    yield from (case.timeouts.image_liveness_ns, case.timeouts.client_liveness_ns)
    yield case.timeouts.driver_ns
    for fault in case.faults:
        yield fault.hold_ns
        yield 0 if fault.when is None else fault.when.for_ns
    for traffic in case.traffic:
        yield traffic.close_after_ns
        for pace in (traffic.pace, traffic.consume):
            yield pace.rest_ns + pace.least_ns(traffic.longest_bytes)
