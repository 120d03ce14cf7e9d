"""Checks of a receiver's status messages: sent on time, and never ahead of received data.

SM            SM            SM            SM
|<- 200 ms -->|<- 200 ms -->|             |         at least this often while the image exists,
     consumed: a quarter of the window ---^         and soon after a quarter was consumed

None is due while there is no image, the driver is paused, or it may not send any
(`feedback_limits`).
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.records import Records
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.flow import positions
from windtunnel.harness.dissect.frames.frames import SM_LENGTH, Frames
from windtunnel.harness.dissect.frames.observed_flows import END_OF_TIME_NS
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    failed,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.wire import Wire, status_messages
from windtunnel.harness.verdict.views.feedback_limits import withheld
from windtunnel.harness.verdict.views.images import without_image
from windtunnel.harness.verdict.views.pauses import Pauses, pauses_of
from windtunnel.harness.verdict.views.series import (
    Series,
    known_at,
    least_series,
    received_by,
)
from windtunnel.harness.verdict.views.sessions import joins_of

ON_TIME = "status_messages_on_time"
BACKED = "status_messages_backed"

TIMEOUT_NS = 200_000_000
"""Default time between a receiver's status messages."""
TOLERANCE_NS = 100_000_000
"""Tolerance for late status messages. Aeron's drivers count a longer duty cycle as exceeding their
threshold, so a healthy driver polls its images again within this time."""
QUARTER = 4
"""A status message is due when more than 1/QUARTER of the window was consumed."""


def status_messages_on_time(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """While an image is read, a status message is sent every 200 ms and every quarter window."""
    wire, subscriber, pauses = present(
        evidence.wire(traffic), evidence.subscriber(traffic), pauses_of(evidence, traffic.to_host)
    )
    consumed = least_series(
        evidence, traffic.to_host, counter_key.SUBSCRIBER_POSITION, wire, with_archives=True
    )
    capture = evidence.name_of(evidence.folder.capture(traffic.to_host))
    samples = evidence.name_of(evidence.folder.host(traffic.to_host).counter_samples)
    messages = status_messages(wire.feedback_sent)
    if len(messages) == 0:
        text = f"{traffic.to_host} sent no status message"
        return failed(ON_TIME, text, traffic.id, evidence=(capture,))
    until_ns = _read_until_ns(wire, subscriber.ended_ns)
    late = _late(wire, messages, consumed, until_ns, pauses)
    if late is not None:
        # What was withheld is due again after the next timeout.
        limited = withheld(evidence, traffic, wire, SM_LENGTH)
        pauses = pauses.with_ranges(limited, more_ns=TIMEOUT_NS)
        pauses = pauses.with_ranges(without_image(evidence, traffic, wire.facts.session_id))
        late = _late(wire, messages, consumed, until_ns, pauses)
    if late is not None:
        position, text = late
        where = (capture,) if position is None else (capture, samples)
        return failed(ON_TIME, text, traffic.id, evidence=where, position=position)
    # With cc=cubic, a loss causes a status message, also if the window cannot shrink any more.
    shortest = wire.facts.mtu if parse_channel(traffic.receive).is_cubic else 0
    frequent = _too_frequent(messages, shortest)
    if frequent:
        return failed(ON_TIME, frequent, traffic.id, evidence=(capture,))
    text = f"{len(messages)} status messages, each sent on time"
    return passed(ON_TIME, text, traffic.id, evidence=(capture, samples))


def _late(
    wire: Wire, messages: Frames, consumed: Series, until_ns: int, pauses: Pauses
) -> tuple[int | None, str] | None:
    """Return the position that was acknowledged too late, if any, and a description of what is
    late, or None.
    """
    silence = _silence(messages["time_ns"].astype(np.int64), until_ns, pauses)
    if silence is not None:
        return None, silence
    return _unacknowledged(wire, messages, consumed, until_ns, pauses)


def _read_until_ns(wire: Wire, ended_ns: int) -> int:
    """Return the time until which the subscriber certainly read the image: when the subscriber
    ended or, if that is earlier, when the first EOS heartbeat arrived.
    """
    return wire.first_end_ns(wire.heartbeats_arrived, ended_ns)


def _silence(sent_ns: NDArray[np.int64], until_ns: int, pauses: Pauses) -> str | None:
    """Describe the first interval without status messages that is too long, or return None."""
    marks = sent_ns[sent_ns < until_ns]
    ends = np.append(marks[1:], until_ns)[: len(marks)]
    gaps = ends - marks - pauses.within_ns(marks, ends)
    late = np.flatnonzero(gaps > TIMEOUT_NS + TOLERANCE_NS)
    if len(late) == 0:
        return None
    after_ms = int(marks[late[0]] - marks[0]) // 1_000_000
    return (
        f"no status message for {int(gaps[late[0]]) // 1_000_000} ms, beginning {after_ms} ms "
        f"after the first one; expected one every {TIMEOUT_NS // 1_000_000} ms"
    )


def _unacknowledged(
    wire: Wire, messages: Frames, consumed: Series, until_ns: int, pauses: Pauses
) -> tuple[int, str] | None:
    """Return the first consumed position that no status message acknowledged in time."""
    facts = wire.facts
    tops = positions(messages, facts.initial_term_id, facts.term_length)
    tops = np.maximum.accumulate(tops + messages["window_bytes"] // QUARTER)
    read_ns = np.minimum(consumed.read_before_ns, END_OF_TIME_NS // 2)
    due_ns = pauses.due_ns(read_ns, TOLERANCE_NS)
    in_time = due_ns <= until_ns
    times_ns = messages["time_ns"].astype(np.int64)
    covered = known_at(times_ns, tops, due_ns, int(tops[0]))
    uncovered = np.flatnonzero(in_time & (consumed.values > covered))
    if len(uncovered) == 0:
        return None
    at = int(uncovered[0])
    position = int(consumed.values[at])
    return position, (
        f"{TOLERANCE_NS // 1_000_000} ms after the subscriber had consumed up to position "
        f"{position}, the last status message plus a quarter window reached only "
        f"{int(covered[at])}"
    )


def _too_frequent(messages: Frames, shortest: int) -> str:
    """Describe identical status messages sent at too short an interval, or return "". Those with
    the shortest window may be.
    """
    last = _repeats(messages)
    times_ns = messages["time_ns"].astype(np.int64)
    for first, end in last:
        if messages["window_bytes"][first] <= shortest:
            continue
        lasted_ns = int(times_ns[end - 1] - times_ns[first])
        if (end - first - 1) * TIMEOUT_NS > lasted_ns + TIMEOUT_NS + TOLERANCE_NS:
            return (
                f"{end - first} identical status messages within {lasted_ns // 1_000_000} ms, "
                f"expected an interval of {TIMEOUT_NS // 1_000_000} ms"
            )
    return ""


def _repeats(messages: Frames) -> list[tuple[int, int]]:
    """Return the index ranges of at least three consecutive identical status messages."""
    names = ("term_id", "term_offset", "window_bytes", "flags", "receiver_id")
    key = np.stack([messages[name].astype(np.int64) for name in names])
    starts = np.flatnonzero(np.any(np.diff(key, axis=1, prepend=key[:, :1] - 1) != 0, axis=0))
    ends = np.append(starts[1:], len(messages))
    return [(int(a), int(b)) for a, b in zip(starts, ends, strict=True) if b - a > 2]


def _not_consumed(
    acknowledged: NDArray[np.int64], sent_ns: NDArray[np.int64], consumed: Series, samples: Records
) -> NDArray[np.bool_]:
    """Return a mask of the status messages that were ahead of the slowest subscriber.

    A sampler pass that begins after a status message was sent reads values that are at least as new
    as the message. A pass writes no sample of an unchanged counter, but its samples of other
    counters show when it ran.
    """
    passes = np.unique(samples["time_ns"].astype(np.int64))
    next_pass = np.searchsorted(passes, sent_ns, side="right")
    in_time = next_pass < len(passes)
    seen_ns = passes[np.minimum(next_pass, len(passes) - 1)]
    row = np.searchsorted(consumed.times_ns, seen_ns, side="right") - 1
    unread: NDArray[np.bool_] = in_time & (row >= 0) & (acknowledged > consumed.values[row])
    return unread


def status_messages_backed(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """Status messages never go backwards, never exceed consumed data, and have a valid window."""
    wire, planned, counted = present(
        evidence.wire(traffic), evidence.planned(traffic), evidence.host_counters(traffic.to_host)
    )
    consumed = least_series(evidence, traffic.to_host, counter_key.SUBSCRIBER_POSITION, wire)
    where = (evidence.name_of(evidence.folder.capture(traffic.to_host)),)
    messages = status_messages(wire.feedback_sent)
    if len(messages) == 0:
        return inconclusive(BACKED, Missing(where[0], "has no status message"), traffic.id)
    facts = wire.facts
    at = positions(messages, facts.initial_term_id, facts.term_length)
    times_ns = messages["time_ns"].astype(np.int64)
    start = planned.log.start_position
    joins = joins_of(evidence, traffic, wire)
    received = received_by(wire, start, joins, contiguous=traffic.reliable)
    backed = known_at(*received, times_ns, start)
    decreased = np.zeros(len(messages), dtype=np.bool_)
    for receiver in np.unique(messages["receiver_id"]):
        own = np.flatnonzero(messages["receiver_id"] == receiver)
        decreased[own[1:]] = np.diff(at[own]) < 0
    widest = facts.term_length // 2
    window = messages["window_bytes"]
    for wrong, what in (
        (at > backed, "was sent before all data up to that position had arrived"),
        (
            _not_consumed(at, times_ns, consumed, counted.samples),
            "was sent before all subscribers had consumed data up to that position",
        ),
        (decreased, "was sent after a status message with a higher position by the same receiver"),
        ((window <= 0) | (window > widest), f"is invalid: expected a window from 1 to {widest}"),
    ):
        offenders = np.flatnonzero(wrong)
        if len(offenders):
            first = int(offenders[0])
            position = int(at[first])
            text = (
                f"a status message with position {position} and window {int(window[first])} {what}"
            )
            return failed(BACKED, text, traffic.id, evidence=where, position=position)
    text = f"{len(messages)} status messages, none ahead of received or consumed data"
    return passed(BACKED, text, traffic.id, evidence=where)
