"""Where the messages of an observed stream are in its sessions, found by their checksums.

    reports      SENT 0 crc    SENT 1 crc                      SENT 2 crc
    session 7    [message 0]   [message 1]   [message 1 again]
    session 9                                                  [message 2]      after a restart

A message that was reported as sent may not be there: it was never sent, or waits for the window.
"""

import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from windtunnel.harness.artifact.middlebox.frame_class import DATA
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH
from windtunnel.harness.dissect.frames.layout import FLAG_BEGIN, FLAG_END
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.checks.observed.sessions import SESSIONS_MAX, sessions_of
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.core.wire import Wire


class Place(NamedTuple):
    """A message in a session of its stream."""

    session_id: int
    start: int
    """Position of its first byte."""
    end: int
    """Position after its last byte."""
    checksum: int


def message_position(
    evidence: Evidence, traffic: TrafficCase, checksums: Sequence[int], index: int
) -> tuple[int | None, str]:
    """Return the position of a message, given the checksums of all messages that were reported as
    sent, and a description of it. If the message is not on the wire, the position is the end of
    what was sent before it.
    """
    places = _places(evidence, traffic)
    if not places:
        return None, ""
    sessions = len({each.session_id for each in places})
    matched = _matched(places, checksums[: index + 1]) or [-1]
    found = places[matched[-1]] if matched[-1] >= 0 else None
    last = max(matched[:-1], default=-1)
    before = places[last] if last >= 0 else None
    text = "position"
    if max(matched) < 0 and max(_matched(places, checksums), default=-1) < 0:
        # The applications compute their checksums otherwise, so the messages are counted.
        found = places[index] if index < len(places) else None
    elif index >= len(checksums):
        found, before, text = None, found or before, "after position"
    elif found is None:
        text = "not on the wire, after position"
        before = before or Place(places[0].session_id, places[0].start, places[0].start, 0)
    if found is None and before is None:
        return None, ""
    place = found or before
    assert place is not None
    position = place.end if found is None else place.start
    session = f" of session {place.session_id}" if sessions > 1 else ""
    return position, f"{text} {position}{session}"


def absent_messages(
    evidence: Evidence, traffic: TrafficCase, checksums: Sequence[int]
) -> list[int]:
    """Return the numbers of the messages that were reported as sent, but are not in the stream,
    although a later one is. The list is empty if the checksums are of something else.
    """
    matched = _matched(_places(evidence, traffic), checksums)
    found = [number for number, at in enumerate(matched) if at >= 0]
    return [
        number for number, at in enumerate(matched) if at < 0 and number < max(found, default=0)
    ]


def _matched(places: list[Place], checksums: Sequence[int]) -> list[int]:
    """Return the index of each message's place, given the checksums of the messages in order, or -1
    if it has none.
    """
    by_checksum: dict[int, list[int]] = {}
    for at, place in enumerate(places):
        by_checksum.setdefault(place.checksum, []).append(at)
    last = -1
    matched = []
    for checksum in checksums:
        candidates = by_checksum.get(checksum, [])
        following = bisect_right(candidates, last)
        matched.append(candidates[following] if following < len(candidates) else -1)
        last = max(last, matched[-1])
    return matched


def _places(evidence: Evidence, traffic: TrafficCase) -> list[Place]:
    """Return all messages of a stream, in the order of its sessions and of their positions."""
    near, case = evidence.capture(traffic.from_host), evidence.case
    if isinstance(near, Missing) or isinstance(case, Missing):
        return []
    found: list[Place] = []
    flows = sessions_of(near, case, traffic)[:SESSIONS_MAX]
    for session_id in dict.fromkeys(each.session_id for each in flows):
        wire = evidence.wire(traffic.model_copy(update={"session_id": session_id}))
        if not isinstance(wire, Missing):
            found += _messages(wire, wire.facts.session_id)
    return found


def _messages(wire: Wire, session_id: int) -> Iterator[Place]:
    """Yield the messages of a session, each at its first place. One that is not in the capture as a
    whole is left out.
    """
    frames, ends = wire.sent.frames, wire.sent.ends
    positions, firsts = np.unique(wire.sent.starts, return_index=True)
    start, checksum, expected = -1, 0, -1
    for position, row in zip(positions.tolist(), firsts.tolist(), strict=True):
        frame = frames[row]
        if frame["frame_type"] != DATA:
            start = -1
            continue
        if frame["flags"] & FLAG_BEGIN:
            start, checksum = position, 0
        elif position != expected:
            start = -1
        at, length = int(frame["at"]), int(frame["frame_length"])
        checksum = zlib.crc32(wire.sender_buf[at + DATA_HEADER_LENGTH : at + length], checksum)
        expected = int(ends[row])
        if start >= 0 and frame["flags"] & FLAG_END:
            yield Place(session_id, start, expected, checksum)
            start = -1
