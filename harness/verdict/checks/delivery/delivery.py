"""Checks that subscribers received all messages, once, in order and intact.

The checks compare only the delivered bytes with the plan, so a violation is conclusive even if a
gate failed. Messages that are missing at the end are not conclusive, as they may still be in
flight, except in a replay that its archive has ended.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.application import SubscriberFacts
from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.resolved.unawaited import (
    never_left_behind,
    without_waiting,
)
from windtunnel.harness.verdict.checks.archive.replay import was_truncated
from windtunnel.harness.verdict.core.compare import first_difference, first_wrong_message
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.evidence_contents import Delivered, Planned
from windtunnel.harness.verdict.core.finding import (
    AtFault,
    Finding,
    Missing,
    failed,
    passed,
    present,
)
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.views.damage import payload_damage, undo_damage
from windtunnel.harness.verdict.views.losses import link_losses
from windtunnel.harness.verdict.views.stretch import delivered_unbroken, late_join
from windtunnel.harness.verdict.views.unawaited import missed_start
from windtunnel.harness.verdict.views.undelivered import undelivered_facts

ONCE = "delivered_once"
INTACT = "delivered_intact"
_LOOK_AHEAD = 4096
"""Number of messages to search before and after the expected place of a misplaced message."""


def delivered_once(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """Every planned message arrived exactly once, in order, byte for byte."""
    planned, delivered = present(evidence.planned(traffic), evidence.delivered(traffic))
    if missed_start(evidence, traffic):
        return _once_from_join(evidence, traffic, planned, delivered)
    where = _where(evidence, traffic)
    delivered = _undo_ordered_damage(evidence, traffic, planned, delivered)
    lengths = delivered.deliveries["length"].astype(np.int64)
    count = min(len(lengths), planned.plan.count)
    other_length = np.flatnonzero(lengths[:count] != planned.plan.lengths[:count])
    whole = int(other_length[0]) if len(other_length) else count
    wrong, byte = first_wrong_message(
        delivered.messages,
        planned.payload,
        planned.plan.lengths[:whole],
        planned.plan.starts[:whole],
    )
    if wrong < 0 and whole < count:
        wrong, byte = whole, _first_wrong_byte(planned, delivered, whole)
    if wrong >= 0:
        return _wrong_message(planned, delivered, int(wrong), int(byte), traffic.id, where)
    if len(lengths) > count:
        text = f"expected {count} messages, found {len(lengths)}"
        position = int(delivered.deliveries["position"][count])
        return failed(
            ONCE,
            text,
            traffic.id,
            evidence=where,
            message=count,
            position=position,
            conclusive=True,
        )
    if count < planned.plan.count:
        return _unfinished(evidence, traffic, planned, count)
    messages = noun_for(count, "message")
    text = f"{count} {messages}, {planned.plan.total_bytes} bytes, each delivered once and in order"
    return passed(ONCE, text, traffic.id, evidence=where)


def _once_from_join(
    evidence: Evidence, traffic: TrafficCase, planned: Planned, delivered: Delivered
) -> Finding:
    """Check a receiver that joined after its sender started: it must receive every message from its
    join on.
    """
    finding = delivered_unbroken(evidence, traffic)
    if finding.outcome is not Outcome.PASS:
        return replace(finding, name=ONCE)
    position = int(delivered.deliveries["position"].max())
    next_message = int(np.searchsorted(planned.log.message_ends, position, side="right"))
    if next_message < planned.plan.count:
        return _unfinished(evidence, traffic, planned, next_message)
    text = f"{finding.text}; joined late: "
    return replace(finding, name=ONCE, text=text + without_waiting(traffic))


def _unfinished(evidence: Evidence, traffic: TrafficCase, planned: Planned, first: int) -> Finding:
    """Return a violation about messages that are missing at the end of the stream."""
    position, later = _message_start(planned, first), planned.plan.count - first - 1
    text = f"message {first} (position {position})"
    if later:
        text += f" and the {later} {noun_for(later, 'message')} after it"
    text += " never arrived"
    waits = never_left_behind(traffic)
    return failed(
        ONCE,
        text if waits else f"{text}: {without_waiting(traffic)}",
        traffic.id,
        evidence=_where(evidence, traffic),
        message=first,
        position=position,
        conclusive=was_truncated(evidence, traffic),
        at_fault=None if waits else AtFault.SCENARIO,
    )


def _undo_ordered_damage(
    evidence: Evidence, traffic: TrafficCase, planned: Planned, delivered: Delivered
) -> Delivered:
    """Return the delivered messages without the payload corruption that the scenario specifies."""
    case, decisions = evidence.case, evidence.decisions
    if isinstance(case, Missing) or isinstance(decisions, Missing):
        return delivered
    damage = payload_damage(decisions, case, traffic, planned.log)
    if not damage:
        return delivered
    lengths = delivered.deliveries["length"].astype(np.int64)
    positions = delivered.deliveries["position"].astype(np.int64)
    ends = planned.log.message_ends
    index = np.minimum(np.searchsorted(ends, positions), len(ends) - 1)
    known = ends[index] == positions
    starts = np.full(planned.plan.count, -1, dtype=np.int64)
    starts[index[known]] = (np.cumsum(lengths) - lengths)[known]
    messages = undo_damage(
        delivered.messages, starts, planned.log, planned.payload, planned.plan.starts, damage
    )
    return replace(delivered, messages=messages)


def _wrong_message(
    planned: Planned,
    delivered: Delivered,
    index: int,
    byte: int,
    about: str,
    where: tuple[str, ...],
) -> Finding:
    """Return a violation about the data that was delivered in place of an expected message."""
    position = int(delivered.deliveries["position"][index])
    other = _matching_message(planned, delivered, index)
    place = f"message {index} (ending at position {position})"
    if other is None:
        found, length = int(delivered.deliveries["length"][index]), planned.plan.lengths[index]
        text = f"{place} differs from byte {byte} on"
        if found != length:
            text += f": expected {length} bytes, found {found}"
    elif other > index:
        gap = f"messages {index} to {other - 1} are" if other - 1 > index else f"message {index} is"
        text = f"{gap} missing: message {other} was delivered instead"
        text += f", ending at position {position}"
    else:
        text = f"{place} is wrong: message {other} was delivered again"
    return failed(
        ONCE,
        text,
        about,
        evidence=where,
        message=index,
        byte_offset=byte,
        position=position,
        conclusive=True,
    )


def _matching_message(planned: Planned, delivered: Delivered, index: int) -> int | None:
    """Return the planned message that matches a delivered message, or None.

    The messages that follow must match, too.
    """
    plan = planned.plan
    first = max(0, index - _LOOK_AHEAD)
    last = min(plan.count, index + _LOOK_AHEAD)
    same = plan.lengths[first:last] == delivered.deliveries["length"][index]
    candidates = sorted((first + np.flatnonzero(same)).tolist(), key=lambda at: abs(at - index))
    for other in candidates:
        pairs = [(index, other), (index + 1, other + 1)]
        pairs = [pair for pair in pairs if pair[0] < len(delivered.deliveries)]
        if all(_is_message(planned, delivered, *pair) for pair in pairs):
            return int(other)
    return None


def _is_message(planned: Planned, delivered: Delivered, index: int, other: int) -> bool:
    plan = planned.plan
    if other >= plan.count or plan.lengths[other] != delivered.deliveries["length"][index]:
        return False
    at = int(delivered.deliveries["length"][:index].astype(np.int64).sum())
    start, length = int(plan.starts[other]), int(plan.lengths[other])
    return bool(first_difference(delivered.messages, at, planned.payload, start, length) < 0)


def _first_wrong_byte(planned: Planned, delivered: Delivered, index: int) -> int:
    """Return the offset of the first wrong byte in a message of the wrong length."""
    lengths = delivered.deliveries["length"].astype(np.int64)
    shared = int(min(lengths[index], planned.plan.lengths[index]))
    at, start = int(lengths[:index].sum()), int(planned.plan.starts[index])
    byte = int(first_difference(delivered.messages, at, planned.payload, start, shared))
    return byte if byte >= 0 else shared


def delivered_intact(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """Each delivered message is as planned, and each message that lost no frame was delivered."""
    planned, delivered = present(evidence.planned(traffic), evidence.delivered(traffic))
    delivered = _undo_ordered_damage(evidence, traffic, planned, delivered)
    ends = planned.log.message_ends
    positions = delivered.deliveries["position"].astype(np.int64)
    index = np.minimum(np.searchsorted(ends, positions), len(ends) - 1)
    violation = _not_intact(evidence, traffic, planned, delivered, index)
    if violation is not None:
        return violation
    facts = undelivered_facts(planned, delivered)
    return _undelivered(evidence, traffic, planned, index, facts)


def _not_intact(
    evidence: Evidence,
    traffic: TrafficCase,
    planned: Planned,
    delivered: Delivered,
    index: NDArray[np.int64],
) -> Finding | None:
    """Return a violation about the first delivered message that differs from the plan, or None."""
    deliveries, plan = delivered.deliveries, planned.plan
    positions = deliveries["position"].astype(np.int64)
    lengths = deliveries["length"].astype(np.int64)
    stray = np.flatnonzero(planned.log.message_ends[index] != positions)
    again = 1 + np.flatnonzero(np.diff(positions) <= 0)
    sized = np.flatnonzero(plan.lengths[index] != lengths)
    firsts = [int(each[0]) if len(each) else len(positions) for each in (stray, again, sized)]
    sound = min(firsts)
    starts = plan.starts[index[:sound]]
    wrong, byte = first_wrong_message(delivered.messages, planned.payload, lengths[:sound], starts)
    at = int(wrong) if wrong >= 0 else sound
    if at == len(positions):
        return None
    position, message = int(positions[at]), int(index[at])
    place = f"delivery {at}, ending at position {position},"
    if wrong >= 0:
        text = f"{place} is message {message}, but differs from byte {int(byte)} on"
    elif at == firsts[0]:
        text = f"{place} is not a planned message"
    elif at == firsts[1]:
        text = f"{place} follows a message that ends at position {int(positions[at - 1])}"
    else:
        found, length = int(lengths[at]), int(plan.lengths[message])
        text = f"{place} is message {message}: expected {length} bytes, found {found}"
    return failed(
        INTACT,
        text,
        traffic.id,
        evidence=_where(evidence, traffic),
        message=message,
        byte_offset=int(byte) if wrong >= 0 else None,
        position=position,
        conclusive=True,
    )


def _undelivered(
    evidence: Evidence,
    traffic: TrafficCase,
    planned: Planned,
    index: NDArray[np.int64],
    counted: dict[str, int],
) -> Finding:
    """Check that every message whose frames all arrived in order was delivered."""
    lost, subscriber = link_losses(evidence, traffic), present(evidence.subscriber(traffic))
    late = late_join(evidence, traffic, subscriber)
    if late:
        position = subscriber.join_position
        where = _where(evidence, traffic)
        return failed(INTACT, late, traffic.id, evidence=where, position=position)
    messages = planned.log.frames["message"]
    expected = np.ones(planned.plan.count, dtype=np.bool_)
    expected[messages[lost.disturbed & (messages >= 0)]] = False
    starts = np.zeros(planned.plan.count, dtype=np.int64)
    firsts = np.flatnonzero(np.diff(messages, prepend=-2) != 0)
    firsts = firsts[messages[firsts] >= 0]
    starts[messages[firsts]] = planned.log.frames["position"][firsts]
    expected &= _within_images(subscriber, starts, planned.log.message_ends)
    undelivered = expected.copy()
    undelivered[index] = False
    where = (*_where(evidence, traffic), evidence.name_of(evidence.folder.decisions))
    facts = {"delivered": len(index), "damaged_on_link": int((~expected).sum()), **counted}
    if undelivered.any():
        message = int(np.flatnonzero(undelivered)[0])
        position = int(starts[message])
        text = (
            f"message {message} (position {position}) lost no frame, but was not delivered; "
            f"{int(undelivered.sum())} {noun_for(int(undelivered.sum()), 'message')} in total"
        )
        return failed(
            INTACT,
            text,
            traffic.id,
            evidence=where,
            message=message,
            position=position,
            facts=facts,
        )
    text = (
        f"{len(index)} of {planned.plan.count} messages delivered, each intact and in order; "
        f"every message without a lost frame was delivered"
    )
    return passed(INTACT, text, traffic.id, evidence=where, facts=facts)


def _within_images(
    subscriber: SubscriberFacts, starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return a mask of the messages, given their first and end positions, that lie in the range of
    an image of the subscriber. Between images, and after the last one, it cannot receive any.
    """
    if not subscriber.parts:
        return starts >= subscriber.join_position
    within = np.zeros(len(starts), dtype=np.bool_)
    for part in subscriber.parts:
        within |= (starts >= part.join_position) & (ends <= part.end_position)
    return within


def _message_start(planned: Planned, message: int) -> int:
    """Return the position of a message's first frame."""
    frames = planned.log.frames
    return int(frames["position"][np.flatnonzero(frames["message"] == message)[0]])


def _where(evidence: Evidence, traffic: TrafficCase) -> tuple[str, ...]:
    files = evidence.folder.host(traffic.to_host).subscriber(traffic.id)
    return evidence.name_of(files.index), evidence.name_of(files.messages)
