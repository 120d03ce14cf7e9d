"""Where the images of a stream's sessions had to join, and where each session had to end.

    SETUP 0 ......................... SETUP 1342144          as they reached the reader's host
    | image 1 joins at 0      X       | image 2 joins at 1342144
      nothing has befallen it         a driver was killed: it joins where a SETUP says

Who listens from the first frame on, and whom nothing befalls, has one image of each session, from
its beginning on. A session ends where its publisher has written to, for a dead one as its log says.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.application import Part, PublisherFacts
from windtunnel.harness.artifact.host.held_log import PUBLICATIONS
from windtunnel.harness.artifact.host.host_event import HappenedEvent
from windtunnel.harness.artifact.middlebox.frame_class import SETUP
from windtunnel.harness.dissect.capture.pcap import sent_by
from windtunnel.harness.dissect.frames.flow import (
    aligned_lengths,
    learn_streams,
    of_stream,
    positional,
    positions,
    wrap_i32,
)
from windtunnel.harness.dissect.frames.frames import Frames
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing, together

NEVER_NS = int(np.iinfo(np.int64).max)
_CUTTERS = frozenset({"driver", "subscriber"})
"""Roles whose pause or death may cost an image; a publisher's ends its session."""

Offence = tuple[int, str]
"""The first wrong position, and what is wrong there."""


@dataclass(frozen=True)
class Listening:
    """What a stream's reader had to hear, and from when on something may have kept it from it."""

    setups: Frames
    "Of all sessions, as they reached the reader's host."
    initial_position: int
    disturbed_ns: int
    "Images that came before this were the first of their sessions and lacked nothing."
    read_anew_ns: int
    "From here on a client may have come back to an image that lives, and joined it anywhere."

    def misjoined(self, parts: list[Part]) -> Offence | None:
        """The first image of one session that joined elsewhere than it had to."""
        own = self.setups[self.setups["session_id"] == parts[0].session_id]
        told = _setup_positions(own)
        for each in parts:
            if each.joined_ns >= self.read_anew_ns:
                return None
            if each.joined_ns < self.disturbed_ns:
                wanted = [self.initial_position]
            else:
                wanted = np.unique(told[own["time_ns"] <= each.joined_ns]).tolist()
            if each.join_position not in wanted:
                where = ", ".join(map(str, wanted)) or "nowhere"
                return each.join_position, (
                    f"an image joined session {each.session_id} at position {each.join_position}, "
                    f"expected {where}, where the sender stood"
                )
        return None

    def needless(self, parts: list[Part]) -> Offence | None:
        """The first further image of one session though nothing had befallen the one before it."""
        for before, after in pairwise(parts):
            if after.joined_ns < self.disturbed_ns:
                return after.join_position, (
                    f"a further image of session {after.session_id} came, at position "
                    f"{after.join_position}: the one before it was lost at {before.end_position}"
                )
        return None


def listening(evidence: Evidence, traffic: TrafficCase) -> Listening | Missing:
    """What was heard of a stream on its reader's host."""
    found = together(evidence.case, evidence.capture(traffic.to_host), evidence.host_events)
    if isinstance(found, Missing):
        return found
    case, far, happened = found
    setups = far.frames[far.frames["frame_type"] == SETUP]
    setups = setups[setups["stream_id"] == traffic.stream_id]
    came = np.zeros(len(setups), dtype=np.bool_)
    for host in traffic.publishers:
        came |= sent_by(setups, case.address(host))
    # A client that stood still is given up by its driver, or gives up a driver that did.
    pauses = [each for each in happened if each.action == "pause" and each.host == traffic.to_host]
    return Listening(
        setups=setups[came],
        initial_position=traffic.initial_position,
        disturbed_ns=_disturbed_ns(case, traffic, happened),
        read_anew_ns=min((each.began_ns for each in pauses), default=NEVER_NS),
    )


def _disturbed_ns(case: Case, traffic: TrafficCase, happened: list[HappenedEvent]) -> int:
    """When the first thing befell a stream that may cost it an image; 0 where that is not known."""
    # Of a group the sender may go on without the one that is late.
    alone = len(traffic.subscribers) == 1 and len(traffic.publishers) == 1
    if case.faults or case.weather or not alone:
        return 0
    cuts = [each.began_ns for each in happened if _CUTTERS & set(each.processes)]
    return min(cuts, default=NEVER_NS)


def _setup_positions(setups: Frames) -> NDArray[np.int64]:
    """Where each of them says that its sender stands, by its own measure of the stream."""
    terms = wrap_i32(setups["term_id"].astype(np.int64) - setups["initial_term_id"])
    found: NDArray[np.int64] = terms * setups["term_length"] + setups["term_offset"]
    return found


def end_of(
    evidence: Evidence, traffic: TrafficCase, session: int, publisher: PublisherFacts
) -> int | Missing:
    """Where a session's publisher had written to; of one that was killed as its log says.

    Without that log, how far the stream left its host.
    """
    if session == publisher.session_id:
        return publisher.end_position
    kept = evidence.log_of(traffic.from_host, PUBLICATIONS, session, traffic.stream_id)
    if not isinstance(kept, Missing):
        return kept.log.tails()[kept.log.active_term_index].position
    found = together(evidence.case, evidence.capture(traffic.from_host))
    if isinstance(found, Missing):
        return found
    case, near = found
    frames = of_stream(near.frames, session, traffic.stream_id)
    frames = frames[sent_by(frames, case.address(traffic.from_host))]
    facts = learn_streams(frames).get((session, traffic.stream_id))
    if facts is None:
        path = evidence.name_of(evidence.folder.capture(traffic.from_host))
        return Missing(path, f"tells of no SETUP of session {session}")
    sent = positional(frames)
    starts = positions(sent, facts.initial_term_id, facts.term_length)
    ends = starts + aligned_lengths(sent["frame_length"])
    return int(ends.max(initial=traffic.initial_position))
