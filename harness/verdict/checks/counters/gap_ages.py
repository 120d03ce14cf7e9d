"""The counters of open gaps over time, compared with the gaps that the capture shows.

    arrived     f0  f2          f3            f1
    gap             [1, 2) open ............. filled
    rcv-gaps-open    0 | 1                    | 0
    rcv-oldest-gap   0 | time since f2        | 0          sampled each few milliseconds

With NAKs for all gaps, the oldest gap at a time is that of the first missing position. It was found
when a later packet arrived. A receiver that fills gaps does so before the capture shows it: there,
an age is only required to be that of some gap. Simulations only: elsewhere, a driver can be late.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.observed_flows import END_OF_TIME_NS
from windtunnel.harness.verdict.checks.retransmission.nak_times import SLACK_NS
from windtunnel.harness.verdict.core.evidence_contents import HostCounters
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.first_gaps import accepted_times
from windtunnel.harness.verdict.views.pauses import Pauses, as_read
from windtunnel.harness.verdict.views.series import highest_by

_NEVER_NS = -1
_NONE = -1


@dataclass(frozen=True)
class _Gaps:
    """What the capture shows of an image's gaps."""

    contiguous_ns: NDArray[np.int64]
    contiguous: NDArray[np.int64]
    "The first missing position after each of these times."
    top_ns: NDArray[np.int64]
    tops: NDArray[np.int64]
    unsure_ns: list[tuple[int, int]]
    "Time ranges in which it is unknown whether a frame had been accepted."

    def first_missing(self, time_ns: int) -> int:
        """Return the first missing position at a time, or _NONE if everything had arrived."""
        at = int(np.searchsorted(self.contiguous_ns, time_ns, side="right")) - 1
        place = int(self.contiguous[at])
        return place if self.found_ns(place) <= time_ns else _NONE

    def found_ns(self, place: int) -> int:
        """Return when a packet first showed that a position was missing."""
        at = int(np.searchsorted(self.tops, place, side="right"))
        return int(self.top_ns[at]) if at < len(self.tops) else END_OF_TIME_NS

    def is_unsure(self, time_ns: int) -> bool:
        return any(low <= time_ns and time_ns - SLACK_NS <= high for low, high in self.unsure_ns)


def _gaps(wire: Wire, start: int) -> _Gaps:
    lows, highs, from_ns, by_ns = accepted_times(wire, start)
    follows = np.append(start, highs[:-1])
    broken = np.flatnonzero(lows > follows)
    count = int(broken[0]) if len(broken) else len(lows)
    unsure = np.flatnonzero(from_ns < by_ns)
    return _Gaps(
        np.append(_NEVER_NS, np.maximum.accumulate(by_ns[:count])) if count else np.array([-1]),
        np.append(start, highs[:count]),
        *highest_by(wire),
        list(zip(from_ns[unsure].tolist(), by_ns[unsure].tolist(), strict=True)),
    )


def wrong_ages(
    wire: Wire, counted: HostCounters, start: int, fill_delay_ns: int | None, pauses: Pauses
) -> str:
    """Return what is wrong with the counters of an image's open gaps over time, or "".

    `fill_delay_ns` is when the receiver fills a gap at the latest, or None if it fills none. A
    paused driver does not update its counters.
    """
    wire = as_read(wire, pauses)
    gaps, found_ns = _gaps(wire, start), np.zeros(0, dtype=np.int64)
    if fill_delay_ns is not None:
        found_ns = np.unique([gaps.found_ns(each) for each in _missing(wire).tolist()])
    open_since_ns = END_OF_TIME_NS
    for time_ns, age_ns, number in _samples(wire, counted):
        if pauses.overlaps(time_ns - SLACK_NS, time_ns):
            continue
        open_since_ns = min(open_since_ns, time_ns) if number > 0 else END_OF_TIME_NS
        if number > 0 and age_ns == 0 and time_ns - open_since_ns > SLACK_NS:
            return f"rcv-oldest-gap is 0 although rcv-gaps-open is {number}"
        if number == 0 and age_ns > 0:
            return f"rcv-oldest-gap is {age_ns} although rcv-gaps-open is 0"
        problem = ""
        if fill_delay_ns is not None:
            problem = _wrong_fill(found_ns, time_ns, age_ns, fill_delay_ns)
        elif not gaps.is_unsure(time_ns):
            problem = _wrong(gaps, time_ns, age_ns)
        if problem:
            return problem
    return ""


def _samples(wire: Wire, counted: HostCounters) -> list[tuple[int, int, int]]:
    """Return (time, age of the oldest gap, open gaps) of each pass of the sampler, as long as the
    image certainly exists.
    """
    ages, counts = (
        _values(wire, counted, each) for each in (counter_key.OLDEST_GAP, counter_key.GAPS_OPEN)
    )
    if ages is None or counts is None:
        return []
    last_ns = int(wire.feedback_sent["time_ns"].max(initial=0))
    passes_ns = np.unique(counted.samples["time_ns"].astype(np.int64))
    passes_ns = passes_ns[(passes_ns >= max(ages[0][0], counts[0][0])) & (passes_ns < last_ns)]
    age, count = (
        each[1][np.searchsorted(each[0], passes_ns, side="right") - 1] for each in (ages, counts)
    )
    return list(zip(passes_ns.tolist(), age.tolist(), count.tolist(), strict=True))


def _values(
    wire: Wire, counted: HostCounters, type_id: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return the times and values of the stream's only counter of a type, or None."""
    facts = wire.facts
    found = counter_key.of_stream(counted.counters, type_id, facts.session_id, facts.stream_id)
    if len(found) != 1:
        return None
    samples = counted.samples_of(found[0])
    if len(samples) == 0:
        return None
    return samples["time_ns"].astype(np.int64), samples["value"].astype(np.int64)


def _missing(wire: Wire) -> NDArray[np.int64]:
    """Return the positions at which a gap can begin: those after the frames that arrived."""
    return np.unique(np.append(wire.arrived.ends, wire.heartbeat_positions))


def _wrong(gaps: _Gaps, time_ns: int, age_ns: int) -> str:
    """Return what is wrong with the age of the oldest gap. The driver set it within SLACK_NS."""
    now = gaps.first_missing(time_ns)
    since_ns = gaps.found_ns(now) if now != _NONE else END_OF_TIME_NS
    if age_ns == 0:
        is_old = since_ns < time_ns - SLACK_NS
        return f"rcv-oldest-gap is 0 while position {now} is missing" if is_old else ""
    low, high = (
        int(np.searchsorted(gaps.contiguous_ns, each, side="right")) - 1
        for each in (time_ns - SLACK_NS, time_ns)
    )
    for place in gaps.contiguous[low : high + 1].tolist():
        latest_ns = gaps.found_ns(place)
        before = gaps.first_missing(latest_ns) if latest_ns != END_OF_TIME_NS else _NONE
        earliest_ns = gaps.found_ns(before) if before != _NONE else latest_ns
        if earliest_ns <= time_ns - age_ns and time_ns - age_ns <= latest_ns + 2 * SLACK_NS:
            return ""
    shown = f"{time_ns - since_ns}" if now != _NONE else "0"
    return f"rcv-oldest-gap is {age_ns}, expected {shown} according to the capture"


def _wrong_fill(found_ns: NDArray[np.int64], time_ns: int, age_ns: int, most_ns: int) -> str:
    """Return what is wrong with the age of the oldest gap if gaps are filled."""
    if age_ns == 0:
        return ""
    if age_ns > most_ns + SLACK_NS:
        return f"rcv-oldest-gap is {age_ns}, but gaps are filled after {most_ns} ns"
    at = int(np.searchsorted(found_ns, time_ns - age_ns, side="right"))
    if at == 0 or time_ns - age_ns - int(found_ns[at - 1]) > 2 * SLACK_NS:
        return f"rcv-oldest-gap is {age_ns}, but no packet showed a gap at that time"
    return ""
