"""The values of one counter over time, with an upper bound on the time of each reading.

    pass of the sampler     |t0 ........|            |t1 ........|
    counters read              hwm  rcv                hwm  rcv          each some time after t

A value with timestamp t0 was read before t1, the time of the next pass that wrote a sample. So all
frames that a sample reflects arrived before t1, and another counter's value at t1 is newer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.records import Records
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.observed_flows import END_OF_TIME_NS
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing, present
from windtunnel.harness.verdict.core.wire import Wire

SUBSCRIPTION_COUNT = 2
"""Number of subscriptions of one subscriber: the application's, and one that records frames."""


@dataclass(frozen=True)
class Series:
    """All samples of one counter, in chronological order."""

    name: str
    times_ns: NDArray[np.int64]
    read_before_ns: NDArray[np.int64]
    "For each sample, a time before which its value was read."
    values: NDArray[np.int64]

    @property
    def last(self) -> int:
        return int(self.values[-1])


def stream_series(
    evidence: Evidence, host: str, type_id: int, wire: Wire, port: int | None = None
) -> Series:
    """Return a stream's newest counter of a type, with its values over time. Of a publication, the
    port to which it sends can be given.
    """
    return _all_series(evidence, host, type_id, wire, port)[-1]


def least_series(
    evidence: Evidence, host: str, type_id: int, wire: Wire, *, with_archives: bool = False
) -> Series:
    """Return the position of a workload's slowest subscription over time. It never decreases.

    A receiver's status messages carry the position of its slowest subscriber. A workload has the
    first two subscriptions. Later ones are those of archives, which may end earlier: each one
    counts until the next one begins, if `with_archives` is set, so the position may be too low.
    """
    found = _all_series(evidence, host, type_id, wire)
    own, later = found[:SUBSCRIPTION_COUNT], found[SUBSCRIPTION_COUNT:] if with_archives else []
    known_ns = max(int(each.times_ns[0]) for each in own)
    ends_ns = [*(int(each.times_ns[0]) for each in later[1:]), END_OF_TIME_NS]
    spans = [(each, known_ns, END_OF_TIME_NS) for each in own]
    spans += [(each, int(each.times_ns[0]), end) for each, end in zip(later, ends_ns, strict=False)]
    times_ns = np.unique(np.concatenate([each.times_ns for each, _, _ in spans]))
    times_ns = times_ns[times_ns >= known_ns]
    read_ns, least = np.zeros_like(times_ns), np.full_like(times_ns, END_OF_TIME_NS)
    for each, start, end in spans:
        counts = (times_ns >= start) & (times_ns < end)
        row = np.searchsorted(each.times_ns, times_ns[counts], side="right") - 1
        read_ns[counts] = np.maximum(read_ns[counts], each.read_before_ns[row])
        least[counts] = np.minimum(least[counts], each.values[row])
    return Series(own[-1].name, times_ns, read_ns, least)


def _all_series(
    evidence: Evidence, host: str, type_id: int, wire: Wire, port: int | None = None
) -> list[Series]:
    """Return all of a stream's counters of a type over time, in order of creation."""
    counted = present(evidence.counters_of_streams(host))
    facts = wire.facts
    name = counter_key.STREAM_NAMES[type_id]
    found = counter_key.of_stream(counted.counters, type_id, facts.session_id, facts.stream_id)
    found = counter_key.to_port(found, port)
    if not found:
        why = f"has no {name} of session {facts.session_id}, stream {facts.stream_id}"
        raise Missing(evidence.name_of(evidence.folder.host(host).counters), why).as_error()
    series = []
    for counter in sorted(found, key=lambda each: each.registration_id):
        chosen = counted.samples_of(counter)
        if len(chosen) == 0:
            path = evidence.name_of(evidence.folder.host(host).counter_samples)
            why = f"has no sample of {name}, counter {counter.counter_id}"
            raise Missing(path, why).as_error()
        series.append(_series(name, counted.samples, chosen))
    return series


def _series(name: str, samples: Records, chosen: Records) -> Series:
    passes = np.append(np.sort(samples["time_ns"]), END_OF_TIME_NS)
    times_ns = chosen["time_ns"].astype(np.int64)
    after = np.searchsorted(passes, times_ns, side="right")
    return Series(name, times_ns, passes[after], chosen["value"].astype(np.int64))


def contiguous_by(wire: Wire, start_position: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return two arrays: increasing times, and the position up to which the data was contiguous at
    each time. What arrived before the start position does not count.
    """
    starts, first = np.unique(wire.arrived.starts, return_index=True)
    starts, first = starts[starts >= start_position], first[starts >= start_position]
    times_ns = wire.arrived.frames["time_ns"][first].astype(np.int64)
    ends = wire.arrived.ends[first]
    follows = np.concatenate([[start_position], ends[:-1]])
    gaps = np.flatnonzero(starts != follows)
    count = int(gaps[0]) if len(gaps) else len(starts)
    return np.maximum.accumulate(times_ns[:count]), ends[:count]


def highest_by(wire: Wire) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return two arrays: increasing times, and the highest position that had arrived at each
    time.
    """
    times_ns = np.concatenate(
        [wire.arrived.frames["time_ns"].astype(np.int64), wire.heartbeat_times_ns]
    )
    tops = np.concatenate([wire.arrived.ends, wire.heartbeat_positions])
    order = np.argsort(times_ns, kind="stable")
    return times_ns[order], np.maximum.accumulate(tops[order])


def highest_sent_at(wire: Wire, times_ns: NDArray[np.int64], start: int) -> NDArray[np.int64]:
    """Return the highest position that had been sent to the receiver at each time."""
    order = np.argsort(wire.sent.frames["time_ns"], kind="stable")
    sent_ns = wire.sent.frames["time_ns"][order].astype(np.int64)
    return known_at(sent_ns, np.maximum.accumulate(wire.sent.ends[order]), times_ns, start)


def received_by(
    wire: Wire, start_position: int, joins: Sequence[tuple[int, int]], *, contiguous: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return two arrays: increasing times, and the position up to which the images of a session had
    received everything, or anything, at each time.

    `joins` are the time and the position at which each image joined. It need not have received what
    precedes it.
    """
    found = [contiguous_by(wire, start_position) if contiguous else highest_by(wire)]
    for time_ns, position in joins:
        found.append((np.array([time_ns]), np.array([position])))
        if contiguous:
            times_ns, ends = contiguous_by(wire, position)
            found.append((np.maximum(times_ns, time_ns), ends))
    times_ns, positions = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.argsort(times_ns, kind="stable")
    return times_ns[order], np.maximum.accumulate(positions[order])


def known_at(
    times_ns: NDArray[np.int64],
    positions: NDArray[np.int64],
    when_ns: NDArray[np.int64],
    start_position: int,
) -> NDArray[np.int64]:
    """Return the position that an increasing series had reached at each given time."""
    at = np.searchsorted(times_ns, when_ns, side="right")
    return np.concatenate([[start_position], positions])[at]
