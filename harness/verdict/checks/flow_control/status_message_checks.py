"""A receiver's status messages: on time, and never beyond what it has.

SM            SM            SM            SM
|<- 200 ms -->|<- 200 ms -->|             |         at least so often while the image lives,
     consumed: a quarter of the window ---^         and soon after so much was consumed
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.records import Records
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.flow import positions
from windtunnel.harness.dissect.frames.frames import Frames
from windtunnel.harness.dissect.frames.layout import FLAG_END_OF_STREAM
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.checks.flow_control.window import status_messages
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    could_not_look,
    failed,
    passed,
    together,
)
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.pauses import Pauses, pauses_of
from windtunnel.harness.verdict.views.series import (
    END_OF_TIME_NS,
    Series,
    contiguous_by,
    highest_by,
    known_at,
    least_series,
)

ON_TIME = "status_messages_on_time"
BACKED = "status_messages_backed"

TIMEOUT_NS = 200_000_000
"""A receiver's default time between two status messages."""
TOLERANCE_NS = 100_000_000
"""Aeron's drivers count a duty cycle of more than this as exceeding its threshold: one that is well
has looked at its images again within it."""
QUARTER = 4
"""A status message is due when more than one part in so many of the window was consumed."""


def status_messages_on_time(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """While the image is read, a status message leaves each 200 ms and each quarter window."""
    found = together(
        evidence.wire(traffic), evidence.subscriber(traffic), pauses_of(evidence, traffic.to_host)
    )
    if isinstance(found, Missing):
        return could_not_look(ON_TIME, found, traffic.id)
    wire, subscriber, pauses = found
    consumed = least_series(evidence, traffic.to_host, counter_key.SUBSCRIBER_POSITION, wire)
    if isinstance(consumed, Missing):
        return could_not_look(ON_TIME, consumed, traffic.id)
    capture = evidence.name_of(evidence.folder.capture(traffic.to_host))
    samples = evidence.name_of(evidence.folder.host(traffic.to_host).counter_samples)
    told = status_messages(wire.answering)
    if len(told) == 0:
        text = f"no status message left {traffic.to_host}"
        return failed(ON_TIME, text, traffic.id, evidence=(capture,))
    until_ns = _read_until_ns(wire, subscriber.ended_ns)
    silent = _silence(told["time_ns"].astype(np.int64), until_ns, pauses)
    if silent is not None:
        return failed(ON_TIME, silent, traffic.id, evidence=(capture,))
    hidden = _consumed_untold(wire, told, consumed, until_ns, pauses)
    if hidden is not None:
        position, text = hidden
        where = (capture, samples)
        return failed(ON_TIME, text, traffic.id, evidence=where, position=position)
    crowd = _crowd(told)
    if crowd:
        return failed(ON_TIME, crowd, traffic.id, evidence=(capture,))
    text = f"{len(told)} status messages, each when it was due"
    return passed(ON_TIME, text, traffic.id, evidence=(capture, samples))


def _read_until_ns(wire: Wire, ended_ns: int) -> int:
    """Up to when the image was surely being read: the end was told, or the subscriber left."""
    beats = wire.beats_arrived
    ends = beats["time_ns"][(beats["flags"] & FLAG_END_OF_STREAM) != 0]
    return min(ended_ns, int(ends.min())) if len(ends) else ended_ns


def _silence(told_ns: NDArray[np.int64], until_ns: int, pauses: Pauses) -> str | None:
    """The first time that nothing was told for too long, from the first time on."""
    marks = told_ns[told_ns < until_ns]
    ends = np.append(marks[1:], until_ns)[: len(marks)]
    gaps = ends - marks - pauses.within_ns(marks, ends)
    late = np.flatnonzero(gaps > TIMEOUT_NS + TOLERANCE_NS)
    if len(late) == 0:
        return None
    after_ms = int(marks[late[0]] - marks[0]) // 1_000_000
    return (
        f"no status message for {int(gaps[late[0]]) // 1_000_000} ms from {after_ms} ms after the "
        f"first on; one is due each {TIMEOUT_NS // 1_000_000} ms"
    )


def _consumed_untold(
    wire: Wire, told: Frames, consumed: Series, until_ns: int, pauses: Pauses
) -> tuple[int, str] | None:
    """The first sample of what was consumed that no status message followed in time."""
    facts = wire.facts
    tops = positions(told, facts.initial_term_id, facts.term_length)
    tops = np.maximum.accumulate(tops + told["window_bytes"] // QUARTER)
    read_ns = np.minimum(consumed.read_before_ns, END_OF_TIME_NS // 2)
    due_ns = pauses.due_ns(read_ns, TOLERANCE_NS)
    looked = due_ns <= until_ns
    times_ns = told["time_ns"].astype(np.int64)
    covered = known_at(times_ns, tops, due_ns, int(tops[0]))
    untold = np.flatnonzero(looked & (consumed.values > covered))
    if len(untold) == 0:
        return None
    at = int(untold[0])
    position = int(consumed.values[at])
    return position, (
        f"{TOLERANCE_NS // 1_000_000} ms after the subscriber had reached position {position}, "
        f"no status message had told more than a quarter window less: {int(covered[at])} was due"
    )


def _crowd(told: Frames) -> str:
    """Whether the same was told over and over, faster than time alone asks for."""
    last = _runs(told)
    times_ns = told["time_ns"].astype(np.int64)
    for first, end in last:
        lasted_ns = int(times_ns[end - 1] - times_ns[first])
        if (end - first - 1) * TIMEOUT_NS > lasted_ns + TIMEOUT_NS + TOLERANCE_NS:
            return (
                f"{end - first} equal status messages within {lasted_ns // 1_000_000} ms, "
                f"where {TIMEOUT_NS // 1_000_000} ms lie between two"
            )
    return ""


def _runs(told: Frames) -> list[tuple[int, int]]:
    """Stretches of status messages that tell the same."""
    names = ("term_id", "term_offset", "window_bytes", "flags", "receiver_id")
    key = np.stack([told[name].astype(np.int64) for name in names])
    starts = np.flatnonzero(np.any(np.diff(key, axis=1, prepend=key[:, :1] - 1) != 0, axis=0))
    ends = np.append(starts[1:], len(told))
    return [(int(a), int(b)) for a, b in zip(starts, ends, strict=True) if b - a > 2]


def _unread(
    told_at: NDArray[np.int64], told_ns: NDArray[np.int64], consumed: Series, samples: Records
) -> NDArray[np.bool_]:
    """Which positions were told before the slowest subscriber had come to them.

    A pass of the sampler that begins later reads what is at least as new; one in which nothing has
    changed leaves no sample of this counter, but of another.
    """
    passes = np.unique(samples["time_ns"].astype(np.int64))
    next_pass = np.searchsorted(passes, told_ns, side="right")
    looked = next_pass < len(passes)
    seen_ns = passes[np.minimum(next_pass, len(passes) - 1)]
    row = np.searchsorted(consumed.times_ns, seen_ns, side="right") - 1
    unread: NDArray[np.bool_] = looked & (row >= 0) & (told_at > consumed.values[row])
    return unread


def status_messages_backed(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """Status messages only go forward, never beyond what all have consumed, with a sound window."""
    found = together(
        evidence.wire(traffic), evidence.planned(traffic), evidence.counted(traffic.to_host)
    )
    if isinstance(found, Missing):
        return could_not_look(BACKED, found, traffic.id)
    wire, planned, counted = found
    consumed = least_series(evidence, traffic.to_host, counter_key.SUBSCRIBER_POSITION, wire)
    if isinstance(consumed, Missing):
        return could_not_look(BACKED, consumed, traffic.id)
    where = (evidence.name_of(evidence.folder.capture(traffic.to_host)),)
    told = status_messages(wire.answering)
    if len(told) == 0:
        return could_not_look(BACKED, Missing(where[0], "shows no status message"), traffic.id)
    facts = wire.facts
    at = positions(told, facts.initial_term_id, facts.term_length)
    times_ns = told["time_ns"].astype(np.int64)
    start = planned.log.start_position
    there = contiguous_by(wire, start) if traffic.reliable else highest_by(wire)
    backed = known_at(*there, times_ns, start)
    fell = np.zeros(len(told), dtype=np.bool_)
    for receiver in np.unique(told["receiver_id"]):
        own = np.flatnonzero(told["receiver_id"] == receiver)
        fell[own[1:]] = np.diff(at[own]) < 0
    widest = facts.term_length // 2
    window = told["window_bytes"]
    for wrong, what in (
        (at > backed, "though all that lies before it had not arrived"),
        (_unread(at, times_ns, consumed, counted.samples), "that not all subscribers had reached"),
        (fell, "behind what its receiver had told before"),
        ((window <= 0) | (window > widest), f"with a window that is not from 1 to {widest}"),
    ):
        offenders = np.flatnonzero(wrong)
        if len(offenders):
            first = int(offenders[0])
            position = int(at[first])
            text = (
                f"a status message told position {position} and window {int(window[first])} {what}"
            )
            return failed(BACKED, text, traffic.id, evidence=where, position=position)
    text = f"{len(told)} status messages, each backed by what had arrived"
    return passed(BACKED, text, traffic.id, evidence=where)
