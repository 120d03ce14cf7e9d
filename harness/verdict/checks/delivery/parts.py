"""What subscribers were given of streams that were cut and went on: exact stretches of the plan.

    plan      | m0 | m1 | m2 | m3 | m4 | m5 | m6 | m7 | m8 |
    part 1    | m0 | m1 | m2 | m3 X                             its image was lost
    part 2                        ^ joins here | m6 | m7 | m8 | end of stream

Of a stream whose image was lost Aeron promises that the image which follows joins where the sender
stands, so what was on its way meanwhile is gone. All the same an image brings one stretch of the
stream, whole, once and in order, from where it joined to where it was left; nothing of a session is
brought twice; and the last image of each session comes to its end. `verdict.views.sessions` says
where images had to join and sessions to end: only the sender knows where it stands.
"""

from itertools import pairwise

import numpy as np

from windtunnel.harness.artifact.host.application import Part, PublisherFacts
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.checks.subject import failed_by_itself
from windtunnel.harness.verdict.core.compare import first_wrong_message
from windtunnel.harness.verdict.core.evidence import Delivered, Evidence, Planned
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    could_not_look,
    failed,
    passed,
    together,
)
from windtunnel.harness.verdict.views.sessions import Listening, Offence, end_of, listening

IN_PARTS = "delivered_in_parts"


def delivered_in_parts(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """Each image brought an exact stretch, joined where the sender stood, the last to the end."""
    found = together(
        evidence.planned(traffic),
        evidence.delivered(traffic),
        evidence.subscriber(traffic),
        evidence.publisher(traffic),
    )
    if isinstance(found, Missing):
        return could_not_look(IN_PARTS, found, traffic.id)
    planned, delivered, subscriber, publisher = found
    unwritten = _unwritten(evidence, traffic)
    if unwritten is not None:
        return could_not_look(IN_PARTS, unwritten, traffic.id)
    files = evidence.folder.host(traffic.to_host).subscriber(traffic.id)
    where = (evidence.name_of(files.index), evidence.name_of(files.document))
    parts = subscriber.own_parts
    if not parts:
        return could_not_look(IN_PARTS, Missing(where[1], "tells of no part"), traffic.id)
    sessions = {each.session_id for each in parts}
    strays = ~np.isin(delivered.deliveries["session_id"], sorted(sessions))
    if strays.any():
        session = int(delivered.deliveries["session_id"][strays][0])
        text = f"a message of session {session} was delivered, of which no image was seen"
        return failed(IN_PARTS, text, traffic.id, evidence=where, conclusive=True)
    for session in sorted(sessions):
        own = [each for each in parts if each.session_id == session]
        offence = _overlap(own) or _inexact(planned, delivered, session, own)
        if offence is not None:
            position, text = offence
            more = {"evidence": where, "position": position, "conclusive": True}
            return failed(IN_PARTS, text, traffic.id, **more)
    lacking = _lacking(evidence, traffic, parts, publisher)
    if isinstance(lacking, Missing):
        return could_not_look(IN_PARTS, lacking, traffic.id)
    if lacking is not None:
        position, text = lacking
        return failed(IN_PARTS, text, traffic.id, evidence=where, position=position)
    brought = sum(each.end_position - each.join_position for each in parts)
    text = f"{len(parts)} images of {len(sessions)} sessions, each an exact stretch of the stream"
    facts = {"parts": len(parts), "sessions": len(sessions), "bytes_of_stream": brought}
    return passed(IN_PARTS, text, traffic.id, evidence=where, facts=facts)


def _unwritten(evidence: Evidence, traffic: TrafficCase) -> Missing | None:
    """That a reader could not write down what it was given, such as on a full disk."""
    files, manifest = (
        evidence.folder.host(traffic.to_host).subscriber(traffic.id),
        evidence.manifest,
    )
    if isinstance(manifest, Missing):
        return manifest
    if not failed_by_itself(manifest, traffic.to_host, files.document.stem):
        return None
    return Missing(evidence.name_of(files.index), "its writer failed by itself", damaged=True)


def _overlap(parts: list[Part]) -> Offence | None:
    """The first image that joined before where the one before it had come to."""
    for before, after in pairwise(parts):
        if after.join_position < before.end_position:
            return after.join_position, (
                f"an image joined session {after.session_id} at position {after.join_position}, "
                f"though the one before it had brought all up to {before.end_position}"
            )
    return None


def _inexact(
    planned: Planned, delivered: Delivered, session: int, parts: list[Part]
) -> Offence | None:
    """The first message of a session that is not what its images were to bring."""
    rows = delivered.deliveries
    chosen = rows["session_id"] == session
    lengths = rows["length"].astype(np.int64)
    starts = (np.cumsum(lengths) - lengths)[chosen]
    lengths, ends = lengths[chosen], rows["position"][chosen].astype(np.int64)
    wanted = _wanted(planned, parts)
    wanted_ends = planned.log.message_ends[wanted]
    count = min(len(ends), len(wanted))
    other = np.flatnonzero(
        (ends[:count] != wanted_ends[:count])
        | (lengths[:count] != planned.plan.lengths[wanted[:count]])
    )
    if len(other):
        at = int(other[0])
        return int(ends[at]), (
            f"delivery {at} of session {session} ends at position {int(ends[at])} and has "
            f"{int(lengths[at])} bytes: expected message {int(wanted[at])}, "
            f"{int(planned.plan.lengths[wanted[at]])} bytes up to {int(wanted_ends[at])}"
        )
    if len(ends) != len(wanted):
        position = int(wanted_ends[count] if count < len(wanted) else ends[count])
        text = f"{len(ends)} messages of session {session}: its images were to bring {len(wanted)}"
        return position, text
    messages = np.concatenate(
        [delivered.messages[start : start + length] for start, length in _pairs(starts, lengths)]
        or [delivered.messages[:0]]
    )
    wrong, byte = first_wrong_message(
        messages, planned.payload, lengths, planned.plan.starts[wanted]
    )
    if wrong < 0:
        return None
    position = int(ends[wrong])
    text = f"message {int(wanted[wrong])} of session {session} is wrong from byte {int(byte)} on"
    return position, f"{text}, ending at position {position}"


def _pairs(starts: np.ndarray, lengths: np.ndarray) -> list[tuple[int, int]]:
    return list(zip(starts.tolist(), lengths.tolist(), strict=True))


def _wanted(planned: Planned, parts: list[Part]) -> np.ndarray:
    """Indices of the messages that lie wholly within what images brought, in order."""
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


def _lacking(
    evidence: Evidence, traffic: TrafficCase, parts: list[Part], publisher: PublisherFacts
) -> Offence | Missing | None:
    """What the images were to bring and none of them has, at either end or between them."""
    own = {
        session: [each for each in parts if each.session_id == session]
        for session in sorted({each.session_id for each in parts})
    }
    unended = next((found for each in own.values() if (found := _unended(each[-1]))), None)
    if unended is not None:
        return unended
    if publisher.session_id not in own:
        return publisher.start_position, f"no image of session {publisher.session_id} was seen"
    heard = listening(evidence, traffic)
    for session, images in own.items():
        offence = _cut_short(images[-1], end_of(evidence, traffic, session, publisher))
        offence = offence or _joined_wrongly(heard, images)
        if offence is not None:
            return offence
    return None


def _unended(last: Part) -> Offence | None:
    """That the last image of a session was left before it had ended."""
    if last.eos_seen:
        return None
    text = f"the last image of session {last.session_id} was left at {last.end_position}, unended"
    return last.end_position, text


def _cut_short(last: Part, end: int | Missing) -> Offence | Missing | None:
    """That a session ended for its subscriber elsewhere than for its publisher."""
    if isinstance(end, Missing):
        return end
    if last.end_position == end:
        return None
    return last.end_position, (
        f"session {last.session_id} ended at {last.end_position} for its subscriber, at {end} "
        "for its publisher"
    )


def _joined_wrongly(heard: Listening | Missing, images: list[Part]) -> Offence | Missing | None:
    """An image that came without need, or joined elsewhere than where the sender stood."""
    if isinstance(heard, Missing):
        return heard
    return heard.needless(images) or heard.misjoined(images)
