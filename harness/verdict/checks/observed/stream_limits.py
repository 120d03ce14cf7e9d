"""Checks of the limits that a scenario sets to an observed stream, in each of its sessions.

    sent       |0 |1 |2 |3       lost: 1                |4
    arrived      |0   |2 |3     |1                        |4
    usable       |0             |1,2,3                    |4      in order, without a gap before it
                 |<-- silence ->|<-------- silence ------>|

All figures are of the wire and of the drivers. What applications do with usable data is unknown.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.noun_form import counted
from windtunnel.harness.artifact.rate_text import rate_text
from windtunnel.harness.artifact.run.result_row import duration
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.checks.observed.goodput import arrival_figures
from windtunnel.harness.verdict.checks.observed.interruptions import interruption_ends
from windtunnel.harness.verdict.checks.observed.sessions import image_count, killed_driver
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    AtFault,
    Finding,
    failed,
    finding_of,
    passed,
    present,
)
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.series import contiguous_by, highest_by, stream_series

GOODPUT, SILENCE, RECOVERY = "observed_goodput", "observed_silence", "observed_recovery"
BACK_PRESSURE, IMAGES = "observed_back_pressure", "observed_images"


def limit_findings(evidence: Evidence, flow: TrafficCase, wire: Wire) -> Iterator[Finding]:
    """Yield a finding for each limit that the scenario sets to a stream."""
    limits = flow.limits
    if limits is None:
        return
    if limits.least_bytes_per_s:
        yield observed_goodput(wire, flow, limits.least_bytes_per_s)
    if limits.silence_most_ns:
        most_ns = limits.silence_most_ns
        yield finding_of(SILENCE, flow.id, observed_silence, evidence, wire, flow, most_ns)
    if limits.recovery_most_ns:
        most_ns = limits.recovery_most_ns
        yield finding_of(RECOVERY, flow.id, observed_recovery, evidence, wire, flow, most_ns)
    if limits.back_pressure_most_ns:
        check, most_ns = observed_back_pressure, limits.back_pressure_most_ns
        yield finding_of(BACK_PRESSURE, flow.id, check, evidence, wire, flow, most_ns)
    if limits.images_most:
        yield observed_images(evidence, wire, flow, limits.images_most)


def observed_goodput(wire: Wire, flow: TrafficCase, least: int) -> Finding:
    """The goodput of a session is at least as high as the scenario says."""
    rate = arrival_figures(wire).get("reached_bytes_per_s")
    if rate is None:
        return _unknown(GOODPUT, flow, "too few frames arrived to measure it")
    text = f"goodput is {rate_text(rate)}, expected at least {rate_text(least)}"
    return _judged(GOODPUT, flow, text, is_kept=rate >= least)


def observed_silence(evidence: Evidence, wire: Wire, flow: TrafficCase, most_ns: int) -> Finding:
    """The time without new usable data is never longer than the scenario says."""
    times_ns, positions = _usable(evidence, wire, flow)
    if len(times_ns) < 2:
        return _unknown(SILENCE, flow, "fewer than two frames arrived")
    gaps_ns = np.diff(times_ns)
    at = int(gaps_ns.argmax())
    text = f"no new data for {duration(int(gaps_ns[at]))} from position {int(positions[at])} on, "
    text += f"expected at most {duration(most_ns)}"
    is_kept = int(gaps_ns[at]) <= most_ns
    return _judged(SILENCE, flow, text, is_kept=is_kept, position=int(positions[at]))


def observed_recovery(evidence: Evidence, wire: Wire, flow: TrafficCase, most_ns: int) -> Finding:
    """After each interruption, new data is usable as soon as the scenario says."""
    ends = interruption_ends(evidence, flow)
    times_ns, positions = _usable(evidence, wire, flow)
    slowest_ns, text, position = 0, "no interruption ended while there was data to send", None
    for ended_ns, what in ends:
        due_ns = _due_after(wire, times_ns, positions, ended_ns)
        if due_ns is None:
            continue
        later = np.flatnonzero(times_ns >= due_ns)
        reached = int(positions[times_ns < due_ns].max(initial=0))
        if not len(later):
            text = f"no new data after {what}, from position {reached} on"
            return _judged(RECOVERY, flow, text, is_kept=False, position=reached)
        took_ns = int(times_ns[later[0]]) - due_ns
        if took_ns >= slowest_ns:
            slowest_ns, position = took_ns, reached
            text = f"new data {duration(took_ns)} after {what}, from position {reached} on, "
            text += f"expected within {duration(most_ns)}"
    return _judged(RECOVERY, flow, text, is_kept=slowest_ns <= most_ns, position=position)


def observed_back_pressure(
    evidence: Evidence, wire: Wire, flow: TrafficCase, most_ns: int
) -> Finding:
    """The publication is never at its limit for longer than the scenario says before it goes on."""
    limit, position = found = [
        stream_series(evidence, flow.from_host, type_id, wire, flow.session_port)
        for type_id in (counter_key.PUBLISHER_LIMIT, counter_key.PUBLISHER_POSITION)
    ]
    begin_ns = max(int(limit.times_ns[0]), int(position.times_ns[0]))
    times_ns = np.union1d(limit.times_ns, position.times_ns)
    _, first = np.unique(wire.sent.starts, return_index=True)
    last_ns = int(wire.sent.frames["time_ns"][first].max(initial=0))
    # A publication that is closed has its limit at its position, and nothing follows.
    times_ns = times_ns[(times_ns >= begin_ns) & (times_ns <= last_ns)]
    at = [each.values[_last_at(each.times_ns, times_ns)] for each in found]
    longest_ns, position_at = _longest(times_ns, at[1] >= at[0], at[1])
    text = f"the publication was at its limit for at most {duration(longest_ns)}, at position "
    text += f"{position_at}, expected at most {duration(most_ns)}"
    is_kept = longest_ns <= most_ns
    return _judged(BACK_PRESSURE, flow, text, is_kept=is_kept, position=position_at)


def observed_images(evidence: Evidence, wire: Wire, flow: TrafficCase, most: int) -> Finding:
    """The subscription's host had no more images of a session than the scenario says, so none was
    lost and replaced.
    """
    count = image_count(evidence, flow, wire)
    if count == 0:
        return _unknown(IMAGES, flow, f"the driver of {flow.to_host} has no counters of an image")
    text = f"{counted(count, 'image')} at host {flow.to_host}, expected at most {most}"
    return _judged(IMAGES, flow, text, is_kept=count <= most)


def _usable(
    evidence: Evidence, wire: Wire, flow: TrafficCase
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return when data became usable, and up to which position.

    If an image was replaced, what it never had is not missing from the next one, so all new data is
    usable.
    """
    if killed_driver(evidence.host_events, flow) or image_count(evidence, flow, wire) > 1:
        times_ns, highest = highest_by(wire)
        is_new = np.diff(highest, prepend=-1) > 0
        return times_ns[is_new], highest[is_new]
    return contiguous_by(wire, present(evidence.planned(flow)).log.start_position)


def _due_after(
    wire: Wire, times_ns: NDArray[np.int64], positions: NDArray[np.int64], ended_ns: int
) -> int | None:
    """Return the time from which new data could be usable after an interruption: its end, or the
    first transmission of new data after it. Returns None if there was no such data.
    """
    reached = int(positions[times_ns < ended_ns].max(initial=0))
    new = wire.sent.frames["time_ns"][wire.sent.ends > reached]
    if not len(new):
        return None
    return max(ended_ns, int(new.min()))


def _last_at(known_ns: NDArray[np.int64], times_ns: NDArray[np.int64]) -> NDArray[np.intp]:
    found: NDArray[np.intp] = np.searchsorted(known_ns, times_ns, side="right") - 1
    return found


def _longest(
    times_ns: NDArray[np.int64], blocked: NDArray[np.bool_], positions: NDArray[np.int64]
) -> tuple[int, int]:
    """Return the longest time for which samples are blocked until one is not, and the position."""
    longest_ns, position, since = 0, 0, -1
    for index, is_blocked in enumerate(blocked.tolist()):
        if is_blocked and since < 0:
            since = index
        elif not is_blocked and since >= 0:
            took_ns = int(times_ns[index] - times_ns[since])
            if took_ns > longest_ns:
                longest_ns, position = took_ns, int(positions[since])
            since = -1
    return longest_ns, position


def _unknown(name: str, flow: TrafficCase, why: str) -> Finding:
    return Finding(name, Outcome.INCONCLUSIVE, why, flow.id)


def _judged(
    name: str, flow: TrafficCase, text: str, *, is_kept: bool, position: int | None = None
) -> Finding:
    if is_kept:
        return passed(name, text, flow.id)
    more = {"kind": Kind.LIVENESS, "at_fault": AtFault.APPLICATION, "position": position}
    return failed(name, text, flow.id, **more)
