"""Check of streams that lose their image: each image must deliver one contiguous range of messages.

    plan      | m0 | m1 | m2 | m3 | m4 | m5 | m6 | m7 | m8 |
    part 1    | m0 | m1 | m2 | m3 X                             its image was lost
    part 2                        ^ joins here | m6 | m7 | m8 | end of stream

After the loss of an image, Aeron guarantees that the next image joins at the sender's position, so
data sent in between is lost. Still, each image must deliver one contiguous range of the stream,
complete, once and in order, from its join position to its last position. No data of a session may
be delivered twice, and the last image of each session must reach the end of stream.
`verdict.views.sessions` determines the expected join positions and session ends.
"""

from itertools import pairwise

import numpy as np

from windtunnel.harness.artifact.host.application import Part, PublisherFacts
from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.checks.subject import workload_failed
from windtunnel.harness.verdict.core.compare import first_wrong_message
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.evidence_contents import Delivered, Planned
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    failed,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.views.sessions import (
    ImageExpectations,
    Violation,
    end_of,
    image_expectations,
)
from windtunnel.harness.verdict.views.undelivered import undelivered_facts

IN_PARTS = "delivered_in_parts"


def delivered_in_parts(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """Each image joined at the sender's position and delivered all messages of its range, and the
    last image of each session reached EOS.
    """
    planned, delivered, subscriber, publisher = present(
        evidence.planned(traffic),
        evidence.delivered(traffic),
        evidence.subscriber(traffic),
        evidence.publisher(traffic),
    )
    present(_unwritten(evidence, traffic))
    files = evidence.folder.host(traffic.to_host).subscriber(traffic.id)
    where = (evidence.name_of(files.index), evidence.name_of(files.document))
    parts = subscriber.parts
    if not parts:
        return inconclusive(IN_PARTS, Missing(where[1], "lists no image"), traffic.id)
    sessions = {each.session_id for each in parts}
    unlisted = ~np.isin(delivered.deliveries["session_id"], sorted(sessions))
    if unlisted.any():
        session = int(delivered.deliveries["session_id"][unlisted][0])
        text = f"a message of session {session} was delivered, but no image of that session is "
        text += "listed"
        return failed(IN_PARTS, text, traffic.id, evidence=where, conclusive=True)
    for session in sorted(sessions):
        own = [each for each in parts if each.session_id == session]
        violation = _overlap(own) or _inexact(planned, delivered, session, own)
        if violation is not None:
            position, text = violation
            more = {"evidence": where, "position": position, "conclusive": True}
            return failed(IN_PARTS, text, traffic.id, **more)
    incomplete = _incomplete(evidence, traffic, parts, publisher)
    if incomplete is not None:
        position, text = incomplete
        return failed(IN_PARTS, text, traffic.id, evidence=where, position=position)
    delivered_bytes = sum(each.end_position - each.join_position for each in parts)
    images, in_all = noun_for(len(parts), "image"), noun_for(len(sessions), "session")
    text = f"{len(parts)} {images} of {len(sessions)} {in_all}, each delivered exactly its range"
    facts = {"parts": len(parts), "sessions": len(sessions), "bytes_of_stream": delivered_bytes}
    facts |= undelivered_facts(planned, delivered)
    return passed(IN_PARTS, text, traffic.id, evidence=where, facts=facts)


def _unwritten(evidence: Evidence, traffic: TrafficCase) -> Missing | None:
    """Return Missing if a subscriber could not write its files, for example on a full disk."""
    files, manifest = (
        evidence.folder.host(traffic.to_host).subscriber(traffic.id),
        evidence.manifest,
    )
    if isinstance(manifest, Missing):
        return manifest
    if not workload_failed(manifest, traffic.to_host, files.document.stem):
        return None
    return Missing(evidence.name_of(files.index), "the subscriber failed to write it", damaged=True)


def _overlap(parts: list[Part]) -> Violation | None:
    """Return a violation if an image joined before the last position of the previous image."""
    for before, after in pairwise(parts):
        if after.join_position < before.end_position:
            return after.join_position, (
                f"an image joined session {after.session_id} at position {after.join_position}, "
                f"but its predecessor had delivered everything up to {before.end_position}"
            )
    return None


def _inexact(
    planned: Planned, delivered: Delivered, session: int, parts: list[Part]
) -> Violation | None:
    """Return a violation for a session's first wrong, missing or extra message."""
    rows = delivered.deliveries
    chosen = rows["session_id"] == session
    lengths = rows["length"].astype(np.int64)
    starts = (np.cumsum(lengths) - lengths)[chosen]
    lengths, ends = lengths[chosen], rows["position"][chosen].astype(np.int64)
    expected = _expected_messages(planned, parts)
    expected_ends = planned.log.message_ends[expected]
    count = min(len(ends), len(expected))
    other = np.flatnonzero(
        (ends[:count] != expected_ends[:count])
        | (lengths[:count] != planned.plan.lengths[expected[:count]])
    )
    if len(other):
        at = int(other[0])
        return int(ends[at]), (
            f"delivery {at} of session {session} ends at position {int(ends[at])} and has "
            f"{int(lengths[at])} bytes: expected message {int(expected[at])}, which ends at "
            f"{int(expected_ends[at])} and has {int(planned.plan.lengths[expected[at]])} bytes"
        )
    if len(ends) != len(expected):
        position = int(expected_ends[count] if count < len(expected) else ends[count])
        text = f"session {session}: expected {len(expected)} messages from its images, "
        text += f"found {len(ends)}"
        return position, text
    messages = np.concatenate(
        [delivered.messages[start : start + length] for start, length in _pairs(starts, lengths)]
        or [delivered.messages[:0]]
    )
    wrong, byte = first_wrong_message(
        messages, planned.payload, lengths, planned.plan.starts[expected]
    )
    if wrong < 0:
        return None
    position = int(ends[wrong])
    text = f"message {int(expected[wrong])} of session {session} differs from byte {int(byte)} on"
    return position, f"{text}; the message ends at position {position}"


def _pairs(starts: np.ndarray, lengths: np.ndarray) -> list[tuple[int, int]]:
    return list(zip(starts.tolist(), lengths.tolist(), strict=True))


def _expected_messages(planned: Planned, parts: list[Part]) -> np.ndarray:
    """Return the indices of the messages that lie entirely within the images' ranges, in order."""
    frames = planned.log.frames
    ends = planned.log.message_ends
    owned = frames["message"] >= 0
    messages, first = np.unique(frames["message"][owned], return_index=True)
    starts = np.zeros(len(ends), dtype=np.int64)
    starts[messages] = frames["position"][owned][first]
    whole = [
        np.flatnonzero((starts >= each.join_position) & (ends <= each.end_position))
        for each in parts
    ]
    return np.concatenate(whole)


def _incomplete(
    evidence: Evidence, traffic: TrafficCase, parts: list[Part], publisher: PublisherFacts
) -> Violation | None:
    """Return a violation if the images do not cover all data that they must deliver."""
    own = {
        session: [each for each in parts if each.session_id == session]
        for session in sorted({each.session_id for each in parts})
    }
    without_eos = next(
        (found for each in own.values() if (found := _without_end_of_stream(each[-1]))), None
    )
    if without_eos is not None:
        return without_eos
    if publisher.session_id not in own:
        return publisher.start_position, f"no image of session {publisher.session_id} is listed"
    for session, images in own.items():
        violation = _wrong_end(images[-1], end_of(evidence, traffic, session, publisher))
        violation = violation or _wrong_join(image_expectations(evidence, traffic), images)
        if violation is not None:
            return violation
    return None


def _without_end_of_stream(last: Part) -> Violation | None:
    """Return a violation if the last image of a session did not reach the end of stream."""
    if last.eos_seen:
        return None
    text = f"the last image of session {last.session_id} stopped at {last.end_position} without EOS"
    return last.end_position, text


def _wrong_end(last: Part, end: int) -> Violation | None:
    """Return a violation if publisher and subscriber disagree on where a session ended."""
    if last.end_position == end:
        return None
    return last.end_position, (
        f"session {last.session_id}: the subscriber's image ended at {last.end_position}, but the "
        f"publication at {end}"
    )


def _wrong_join(expectations: ImageExpectations, images: list[Part]) -> Violation | None:
    """Return a violation if an image was replaced although nothing had disturbed it, or if an image
    joined at a wrong position.
    """
    return expectations.unneeded_image(images) or expectations.wrong_join(images)
