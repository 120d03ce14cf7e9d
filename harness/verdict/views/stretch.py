"""What a reader was given that joined late or was cut off: a stretch of the stream, unbroken.

    planned     | 0 | 1 | 2 | 3 | 4 | 5 ...
    delivered           | 2 | 3 | 4 |           joined within 1, cut off before 5

The first message is the first that begins where the reader had joined, or behind; from there on
none is missing, none comes twice, and each is whole. Judged from the delivered bytes against the
plan, so a violation stands whatever gate is broken. That a reader was cut off at all is for the
gate on faults to say.

Where it joined is what its driver has told it. So a reader that was there before anybody published,
alone and without a cut, is owed the stream from its start.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.application import SubscriberFacts
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.core.compare import first_wrong_message
from windtunnel.harness.verdict.core.evidence import Evidence, Planned
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    could_not_look,
    failed,
    passed,
    together,
)

UNBROKEN = "delivered_unbroken"
_OF_TIME = ("drop", "duplicate", "hold", "swap")
"""What a rule may do to a frame so that each that comes says what was sent."""
_OPENING = {"SETUP", "SM"}
"""What tells a receiver where a stream is, and a sender that somebody listens."""


def delivered_unbroken(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """What arrived is a stretch of the plan from where the reader joined, without a hole."""
    found = together(
        evidence.planned(traffic), evidence.delivered(traffic), evidence.subscriber(traffic)
    )
    if isinstance(found, Missing):
        return could_not_look(UNBROKEN, found, traffic.id)
    planned, delivered, subscriber = found
    files = evidence.folder.host(traffic.to_host).subscriber(traffic.id)
    where = evidence.name_of(files.index), evidence.name_of(files.messages)
    lengths = delivered.deliveries["length"].astype(np.int64)
    positions = delivered.deliveries["position"].astype(np.int64)
    if len(lengths) == 0:
        return could_not_look(UNBROKEN, Missing(where[0], "tells of no message"), traffic.id)
    plan = planned.plan
    first = int(np.searchsorted(_starts(planned), subscriber.join_position))
    count = min(len(lengths), plan.count - first)
    stretch = slice(first, first + count)
    ends = planned.log.message_ends[stretch]
    other = np.flatnonzero((lengths[:count] != plan.lengths[stretch]) | (positions[:count] != ends))
    sound = int(other[0]) if len(other) else count
    stretch = slice(first, first + sound)
    wrong, byte = first_wrong_message(
        delivered.messages, planned.payload, plan.lengths[stretch], plan.starts[stretch]
    )
    at = int(wrong) if wrong >= 0 else sound
    more: dict[str, Any] = {"evidence": where, "message": first + at, "conclusive": True}
    if wrong >= 0:
        text = f"message {first + at} differs from the planned one from byte {int(byte)} on"
        return failed(UNBROKEN, text, traffic.id, byte_offset=int(byte), **more)
    if sound < len(lengths):
        text = (
            f"joined at position {subscriber.join_position}: delivery {at} should be message "
            f"{first + at}, and is one of {int(lengths[at])} bytes that ends at position "
            f"{int(positions[at])}"
        )
        return failed(UNBROKEN, text, traffic.id, position=int(positions[at]), **more)
    late = late_join(evidence, traffic, subscriber)
    if late:
        told = (evidence.name_of(files.document),)
        position = subscriber.join_position
        return failed(UNBROKEN, late, traffic.id, evidence=told, position=position)
    text = f"messages {first} to {first + count - 1} of {plan.count}, each once and in order"
    return passed(UNBROKEN, text, traffic.id, evidence=where, facts={"delivered": count})


def late_join(evidence: Evidence, traffic: TrafficCase, subscriber: SubscriberFacts) -> str:
    """What is wrong with where a reader joined; empty where it is in order."""
    owed = owed_from(evidence, traffic, subscriber)
    if subscriber.join_position <= owed:
        return ""
    return (
        f"joined at position {subscriber.join_position}, though it was there before anybody "
        f"published: the stream begins at {owed}"
    )


def owed_from(evidence: Evidence, traffic: TrafficCase, subscriber: SubscriberFacts) -> int:
    """The position from which a reader must be given the stream.

    A sender goes nowhere before a receiver answers, and that has its image then. But another's
    answer may let it go on, and so may a false word of the middlebox; an image that comes in the
    place of a lost one, or from an archive, begins where it may.
    """
    case = evidence.case
    alone = len(traffic.publishers) == len(traffic.subscribers) == 1
    late = traffic.rejoins or traffic.merges or traffic.partial or traffic.replays
    if isinstance(case, Missing) or not alone or late or case.events:
        return subscriber.join_position
    for fault in case.faults:
        told = {*fault.frame_types, *(each.type for each in fault.forged)}
        if fault.action not in _OF_TIME and told & _OPENING:
            return subscriber.join_position
    return traffic.initial_position


def _starts(planned: Planned) -> NDArray[np.int64]:
    """Position of each message's first frame, in order."""
    frames = planned.log.frames
    messages = frames["message"]
    firsts = np.flatnonzero(np.diff(messages, prepend=-2) != 0)
    firsts = firsts[messages[firsts] >= 0]
    found: NDArray[np.int64] = frames["position"][firsts].astype(np.int64)
    return found
