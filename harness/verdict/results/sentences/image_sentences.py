"""Sentences about a subscriber's images: when they closed and why, and what was lost in between.

    pause          |<-------- 12 s -------->|
    image 1   -----------------X  closed 10.1 s after the pause began (image liveness timeout)
    image 2                            ^ joined at position 2,531,744: 377 messages are missing

An image that ended with its stream needs no sentence. A timeout is named if the interruption and
the time until the image closed both exceed it.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from windtunnel.harness.artifact.host.application import Part, SubscriberFacts
from windtunnel.harness.artifact.noun_form import counted
from windtunnel.harness.artifact.run.observed import NS_PER_S, Interruption
from windtunnel.harness.artifact.run.result_row import duration
from windtunnel.harness.dissect.capture.pcap import sent_by
from windtunnel.harness.dissect.frames.flow import of_stream
from windtunnel.harness.scenario.explain.crossed_timeouts import (
    Timeout,
    cut_timeouts,
    event_timeouts,
)
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.scenario.resolved.cut import DRIVER_NS
from windtunnel.harness.scenario.schema.host_event import IMAGE_LIVENESS_NS
from windtunnel.harness.scenario.schema.units import format_duration
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.views.interruptions import CUT, KILL

CLOSING = ("image liveness", "client liveness", "driver")
"""Names of the timeouts after which an image is closed."""
KEEPALIVE_NS = 1_000_000_000
"""Longest interval between a driver's keepalives. The last one before a kill starts its timeout."""


def image_sentences(
    evidence: Evidence,
    case: Case,
    flow: TrafficCase,
    happened: Sequence[Interruption],
    start_ns: int,
) -> Iterator[str]:
    """Yield a sentence for each image that closed before its stream ended or joined late.

    `happened` are the interruptions that affect the flow; `start_ns` is the time of the first
    offer.
    """
    facts = evidence.subscriber(flow)
    if isinstance(facts, Missing) or flow.merges is not None:
        return
    parts = facts.parts or _only_part(facts)
    if not parts:
        return
    if parts[0].join_position > flow.initial_position:
        join = parts[0].join_position
        missing = _missing_text(evidence, flow, flow.initial_position, join, "before it")
        yield f"the first image joined at position {join:,}{missing}"
    for before, after in pairwise(parts):
        text = _opened(evidence, flow, before, after)
        yield f"{_closed(evidence, case, flow, before, happened, start_ns)}; {text}"
    if not parts[-1].eos_seen:
        text = _closed(evidence, case, flow, parts[-1], happened, start_ns)
        yield f"{text}; no image followed"


def _only_part(facts: SubscriberFacts) -> list[Part]:
    """Return the image of a stream that does not rejoin, or none if it was never available."""
    if not facts.message_count:
        return []
    session, join, end = facts.session_id, facts.join_position, facts.end_position
    return [Part(session, join, end, facts.eos_seen, facts.started_ns, facts.ended_ns)]


def _closed(
    evidence: Evidence,
    case: Case,
    flow: TrafficCase,
    part: Part,
    happened: Sequence[Interruption],
    start_ns: int,
) -> str:
    """Return a clause about the end of an image: when it closed, and after what."""
    when = f" at {(part.left_ns - start_ns) / NS_PER_S:.3f} s" if start_ns else ""
    if part.eos_seen:
        return f"a session ended at position {part.end_position:,}{when}"
    text = f"an image closed at position {part.end_position:,}{when}"
    earlier = [each for each in happened if each.began_ns <= part.left_ns]
    if not earlier:
        return text + _last_frame_text(evidence, case, flow, part)
    cause = earlier[-1]
    after_ns = part.left_ns - cause.began_ns
    text += f", {duration(after_ns)} after {cause.kind} {cause.id!r} began"
    timeouts = _exceeded(case, cause, min(after_ns, cause.ended_ns - cause.began_ns))
    return f"{text} ({' or '.join(timeouts)})" if timeouts else text


def _last_frame_text(evidence: Evidence, case: Case, flow: TrafficCase, part: Part) -> str:
    """Return how long before the end of an image the last frame of its session arrived, with the
    timeout if that was as long, or an empty string if that is unknown.
    """
    capture = evidence.capture_of_streams(flow.to_host)
    if isinstance(capture, Missing):
        return ""
    frames = of_stream(capture.frames, part.session_id, flow.stream_id)
    frames = frames[sent_by(frames, case.address(flow.from_host))]
    times_ns = frames["time_ns"].astype(np.int64)
    times_ns = times_ns[times_ns <= part.left_ns]
    if len(times_ns) == 0:
        return ""
    after_ns, limit_ns = part.left_ns - int(times_ns.max()), case.timeouts.image_liveness_ns
    limit_ns = limit_ns or IMAGE_LIVENESS_NS
    text = f", {duration(after_ns)} after the last frame arrived"
    if after_ns < limit_ns:
        return text
    return f"{text} (image liveness timeout of {format_duration(limit_ns)})"


def _exceeded(case: Case, cause: Interruption, lasted_ns: int) -> list[str]:
    """Return the timeouts that close an image and expired during an interruption."""
    if cause.kind == CUT:
        rule = next(each for each in case.faults if each.id == cause.id)
        found = [each for some in cut_timeouts(case, rule).values() for each in some]
    else:
        event = next(each for each in case.events if each.id == cause.id)
        found = event_timeouts(case, event)
        if event.action == KILL and "driver" in event.roles and event.process != "all":
            limit_ns = case.timeouts.driver_ns or DRIVER_NS
            effect = f"the clients on {event.host} close"
            found.append(Timeout("driver", limit_ns, effect, KEEPALIVE_NS))
    return list(
        dict.fromkeys(
            f"{each.name} timeout of {format_duration(each.limit_ns)}"
            for each in found
            if each.name in CLOSING and each.limit_ns - each.slack_ns <= lasted_ns
        )
    )


def _opened(evidence: Evidence, flow: TrafficCase, before: Part, after: Part) -> str:
    """Return a clause about the image that replaced another one."""
    if after.session_id != before.session_id:
        return f"an image of another session joined at position {after.join_position:,}"
    text = f"the next one joined at position {after.join_position:,}"
    return text + _missing_text(
        evidence, flow, before.end_position, after.join_position, "between them"
    )


def _missing_text(evidence: Evidence, flow: TrafficCase, begin: int, end: int, where: str) -> str:
    """Return how many messages of a range of positions were not delivered, or an empty string if
    that is unknown.
    """
    planned, delivered = evidence.planned(flow), evidence.delivered(flow)
    if isinstance(planned, Missing) or isinstance(delivered, Missing):
        return ""
    ends = planned.log.message_ends
    starts = np.concatenate([[planned.log.start_position], ends[:-1]])
    within = (ends > begin) & (starts < end)
    got = np.isin(ends, delivered.deliveries["position"].astype(np.int64))
    missing = int((within & ~got).sum())
    if not missing:
        return ": no message is missing"
    verb = "is" if missing == 1 else "are"
    return f": {counted(missing, 'message')} {where} {verb} missing"
