"""Check that a subscriber that joined late or was cut off received a contiguous range of messages.

    planned     | 0 | 1 | 2 | 3 | 4 | 5 ...
    delivered           | 2 | 3 | 4 |           joined within 1, cut off before 5

The first delivered message must be the first one that begins at or after the join position. From
there on, no message may be missing, duplicated or incomplete. The check compares the delivered
bytes with the plan, so a violation is conclusive even if a gate failed. The gate on faults verifies
that the subscriber was cut off.

The driver reports the join position. A single subscriber that was connected before the publisher
started, and was not interrupted, must receive the stream from its start.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.application import SubscriberFacts
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.core.compare import first_wrong_message
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.evidence_contents import Planned
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    failed,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.views.undelivered import undelivered_facts

UNBROKEN = "delivered_unbroken"
_CONTENT_PRESERVING = ("drop", "duplicate", "hold", "swap")
"""Fault actions that leave the content of frames unchanged."""
_CONNECTION_FRAMES = {"SETUP", "SM"}
"""Types of frames that connect a stream: SETUP has the sender's position, SM is the response."""


def delivered_unbroken(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """The delivered messages are a contiguous range of the plan, starting at the join position."""
    planned, delivered, subscriber = present(
        evidence.planned(traffic), evidence.delivered(traffic), evidence.subscriber(traffic)
    )
    files = evidence.folder.host(traffic.to_host).subscriber(traffic.id)
    where = evidence.name_of(files.index), evidence.name_of(files.messages)
    lengths = delivered.deliveries["length"].astype(np.int64)
    positions = delivered.deliveries["position"].astype(np.int64)
    if len(lengths) == 0:
        return inconclusive(UNBROKEN, Missing(where[0], "lists no message"), traffic.id)
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
            f"joined at position {subscriber.join_position}: expected message {first + at} as "
            f"delivery {at}, found a message of {int(lengths[at])} bytes that ends at position "
            f"{int(positions[at])}"
        )
        return failed(UNBROKEN, text, traffic.id, position=int(positions[at]), **more)
    late = late_join(evidence, traffic, subscriber)
    if late:
        document = (evidence.name_of(files.document),)
        position = subscriber.join_position
        return failed(UNBROKEN, late, traffic.id, evidence=document, position=position)
    text = f"messages {first} to {first + count - 1} of {plan.count}, each delivered once and in "
    text += "order"
    facts = {"delivered": count, **undelivered_facts(planned, delivered)}
    return passed(UNBROKEN, text, traffic.id, evidence=where, facts=facts)


def late_join(evidence: Evidence, traffic: TrafficCase, subscriber: SubscriberFacts) -> str:
    """Describe a join position beyond the expected one, or return "" if the subscriber joined in
    time.
    """
    expected = expected_join_position(evidence, traffic, subscriber)
    if subscriber.join_position <= expected:
        return ""
    return (
        f"joined at position {subscriber.join_position}, expected {expected}: the subscriber was "
        "connected before the publisher started"
    )


def expected_join_position(
    evidence: Evidence, traffic: TrafficCase, subscriber: SubscriberFacts
) -> int:
    """Return the position from which a subscriber must receive the stream.

    A sender sends no data before a status message arrives, and the receiver has its image by then.
    But a status message from another receiver, or one forged by the middlebox, may also start the
    sender. An image that replaces a lost image, and a replay's image, may begin anywhere.
    """
    case = evidence.case
    alone = len(traffic.publishers) == len(traffic.subscribers) == 1
    late = traffic.rejoins or traffic.merges or traffic.partial or traffic.replays
    if isinstance(case, Missing) or not alone or late or case.events:
        return subscriber.join_position
    for fault in case.faults:
        types = {*fault.frame_types, *(each.type for each in fault.forged)}
        if fault.action not in _CONTENT_PRESERVING and types & _CONNECTION_FRAMES:
            return subscriber.join_position
    return traffic.initial_position


def _starts(planned: Planned) -> NDArray[np.int64]:
    """Return the position of each message's first frame, in order."""
    frames = planned.log.frames
    messages = frames["message"]
    firsts = np.flatnonzero(np.diff(messages, prepend=-2) != 0)
    firsts = firsts[messages[firsts] >= 0]
    found: NDArray[np.int64] = frames["position"][firsts].astype(np.int64)
    return found
