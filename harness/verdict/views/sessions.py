"""Expected join positions of a stream's images, and expected end positions of its sessions.

    SETUP 0 ......................... SETUP 1342144          as arrived at the subscriber's host
    | image 1 joins at 0      X       | image 2 joins at 1342144
      undisturbed                     a driver was killed: it joins at the position of a SETUP

An undisturbed subscriber that is connected from the first frame on has one image of each session,
which begins where the session begins. A session ends at its publisher's last position or, if the
publisher was killed, at the end of its log.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.application import Part, PublisherFacts
from windtunnel.harness.artifact.host.host_event import AppliedEvent
from windtunnel.harness.artifact.host.log_index import PUBLICATIONS
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
from windtunnel.harness.verdict.core.finding import Missing, present
from windtunnel.harness.verdict.core.wire import Wire

NEVER_NS = int(np.iinfo(np.int64).max)
_IMAGE_ROLES = frozenset({"driver", "subscriber"})
"""Roles of processes whose pause or kill may cause the loss of an image. (A killed publisher's
session ends instead.)"""

Violation = tuple[int, str]
"""The first wrong position, with a description."""


@dataclass(frozen=True)
class ImageExpectations:
    """The inputs that determine a subscriber's expected images: the SETUPs that arrived, and the
    times of disturbances.
    """

    setups: Frames
    "SETUPs of all sessions, as they arrived at the subscriber's host."
    initial_position: int
    disturbed_ns: int
    "Every image that joined before this time must be complete, and the first one of its session."
    rejoin_ns: int
    "From this time on, a client may have rejoined an existing image at any position."

    def wrong_join(self, parts: list[Part]) -> Violation | None:
        """Return the first image of a session that joined at an unexpected position."""
        own = self.setups[self.setups["session_id"] == parts[0].session_id]
        sender_positions = _setup_positions(own)
        for each in parts:
            if each.joined_ns >= self.rejoin_ns:
                return None
            if each.joined_ns < self.disturbed_ns:
                expected = [self.initial_position]
            else:
                expected = np.unique(sender_positions[own["time_ns"] <= each.joined_ns]).tolist()
            if each.join_position not in expected:
                where = ", ".join(map(str, expected)) or "none, as no SETUP had arrived"
                return each.join_position, (
                    f"an image joined session {each.session_id} at position {each.join_position}, "
                    f"expected the sender's position: {where}"
                )
        return None

    def unneeded_image(self, parts: list[Part]) -> Violation | None:
        """Return the first image that replaced an undisturbed image of the same session."""
        for before, after in pairwise(parts):
            if after.joined_ns < self.disturbed_ns:
                return after.join_position, (
                    f"an undisturbed image of session {after.session_id} was lost at position "
                    f"{before.end_position} and replaced at position {after.join_position}"
                )
        return None


def is_read_from_one_image(evidence: Evidence, traffic: TrafficCase) -> bool:
    """Return whether a subscriber certainly read a stream's only session from one image, as it does
    if nothing interrupts the stream.
    """
    if not traffic.rejoins:
        return True
    case, subscriber = evidence.case, evidence.subscriber(traffic)
    if isinstance(case, Missing) or isinstance(subscriber, Missing):
        return False
    parts = subscriber.parts
    return len(parts) == 1 and parts[0].eos_seen and case.sessions_of(traffic) == 1


def sessions_sent(evidence: Evidence, traffic: TrafficCase) -> list[TrafficCase]:
    """Return a stream once for each session that its publisher's host sent. There are several if
    the publisher was killed and restarted.
    """
    case = present(evidence.case)
    if case.sessions_of(traffic) == 1:
        return [traffic]
    near = present(evidence.capture_of_streams(traffic.from_host))
    setups = near.frames[near.frames["frame_type"] == SETUP]
    setups = setups[sent_by(setups, case.address(traffic.from_host))]
    setups = setups[setups["stream_id"] == traffic.stream_id]
    sessions = np.unique(setups["session_id"]).tolist()
    return [traffic.model_copy(update={"session_id": each}) for each in sessions]


def joins_of(evidence: Evidence, traffic: TrafficCase, wire: Wire) -> list[tuple[int, int]]:
    """Return when and at which position each image of a session joined, if its stream rejoins, or
    if a receiver may have joined its group late: with the first SETUP of that position which
    arrived. What was sent earlier need not have arrived.
    """
    subscriber = evidence.subscriber(traffic)
    if isinstance(subscriber, Missing) or not (subscriber.parts or len(traffic.subscribers) > 1):
        return []
    joined = [(each.session_id, each.join_position, each.joined_ns) for each in subscriber.parts]
    joined = joined or [(subscriber.session_id, subscriber.join_position, subscriber.ended_ns)]
    setups = present(evidence.capture_of_streams(traffic.to_host)).frames
    setups = of_stream(setups, wire.facts.session_id, wire.facts.stream_id)
    setups = setups[setups["frame_type"] == SETUP]
    sent, times_ns = _setup_positions(setups), setups["time_ns"].astype(np.int64)
    joins = []
    for session, position, joined_ns in joined:
        if session == wire.facts.session_id:
            joins.append((int(times_ns[sent == position].min(initial=joined_ns)), position))
    return joins


def image_expectations(evidence: Evidence, traffic: TrafficCase) -> ImageExpectations:
    """Read from the evidence what determines a subscriber's expected images: SETUPs and
    disturbances.
    """
    case, far, happened = present(
        evidence.case, evidence.capture_of_streams(traffic.to_host), evidence.host_events
    )
    setups = far.frames[far.frames["frame_type"] == SETUP]
    setups = setups[setups["stream_id"] == traffic.stream_id]
    from_publisher = np.zeros(len(setups), dtype=np.bool_)
    for host in traffic.publishers:
        from_publisher |= sent_by(setups, case.address(host))
    # A paused client is timed out by its driver, or times out a paused driver.
    pauses = [each for each in happened if each.action == "pause" and each.host == traffic.to_host]
    return ImageExpectations(
        setups=setups[from_publisher],
        initial_position=traffic.initial_position,
        disturbed_ns=_disturbed_ns(case, traffic, happened),
        rejoin_ns=min((each.began_ns for each in pauses), default=NEVER_NS),
    )


def _disturbed_ns(case: Case, traffic: TrafficCase, happened: list[AppliedEvent]) -> int:
    """Return the time of the first event that may cause the loss of an image, or 0 if unknown."""
    # The sender of a group may continue without a receiver that joins late.
    alone = len(traffic.subscribers) == 1 and len(traffic.publishers) == 1
    if case.faults or case.impairments or not alone:
        return 0
    events = [each.began_ns for each in happened if _IMAGE_ROLES & set(each.processes)]
    return min(events, default=NEVER_NS)


def _setup_positions(setups: Frames) -> NDArray[np.int64]:
    """Return each SETUP's sender position, computed from its initial term id and term length."""
    terms = wrap_i32(setups["term_id"].astype(np.int64) - setups["initial_term_id"])
    found: NDArray[np.int64] = terms * setups["term_length"] + setups["term_offset"]
    return found


def end_of(
    evidence: Evidence, traffic: TrafficCase, session: int, publisher: PublisherFacts
) -> int:
    """Return the last position of a session's publisher.

    For a killed publisher, this is the end of its log or, if there is no log, the highest position
    that left its host.
    """
    if session == publisher.session_id:
        return publisher.end_position
    kept = evidence.log_of(traffic.from_host, PUBLICATIONS, session, traffic.stream_id)
    if not isinstance(kept, Missing):
        return kept.log.tails()[kept.log.active_term_index].position
    case, near = present(evidence.case, evidence.capture_of_streams(traffic.from_host))
    frames = of_stream(near.frames, session, traffic.stream_id)
    frames = frames[sent_by(frames, case.address(traffic.from_host))]
    facts = learn_streams(frames).get((session, traffic.stream_id))
    if facts is None:
        path = evidence.name_of(evidence.folder.capture(traffic.from_host))
        raise Missing(path, f"has no SETUP of session {session}").as_error()
    sent = positional(frames)
    starts = positions(sent, facts.initial_term_id, facts.term_length)
    ends = starts + aligned_lengths(sent["frame_length"])
    return int(ends.max(initial=traffic.initial_position))
