"""One stream as seen in the captures at both of its hosts: the frames sent, and those that arrived.

    publisher's capture    sent ------> arrived        subscriber's capture
                   feedback_arrived <-- feedback_sent
        feedback_arrived_from_all: the same from all subscribers

A stream with several subscribers has one Wire for each of them. If it has several publishers,
`arrived` includes the frames of all publishers, since they share one image. So do the publications
of a session that was sent to several ports of the subscriber, each of which has a Wire, too.

Session id, initial term id and term length come from SETUP frames, not from the files that the
processes wrote.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import NAK, SETUP, SM
from windtunnel.harness.dissect.capture.pcap import Capture, sent_by, sent_to
from windtunnel.harness.dissect.frames.copies import has_returned, of_other_port, without_copies
from windtunnel.harness.dissect.frames.flow import (
    StreamFacts,
    aligned_lengths,
    heartbeats,
    learn_streams,
    of_stream,
    positional,
    positions,
)
from windtunnel.harness.dissect.frames.frames import FRAME_ALIGNMENT, Frames
from windtunnel.harness.dissect.frames.layout import (
    FLAG_END_OF_STREAM,
    SM_FLAG_END_OF_STREAM,
    SM_FLAG_SEND_SETUP,
)
from windtunnel.harness.dissect.frames.observed_flows import of_publication
from windtunnel.harness.dissect.frames.route import between, of_port, within
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel

DYNAMIC = "dynamic"
CLOSING_NS = 1_200_000_000
"""Time for which a receiver sends status messages after the last subscription of an image was
closed: the driver's timer interval, and that of status messages. They have EOS after that.
"""
MAY_HAVE_LEFT = (
    "; what is beyond arrived at the time of the last status message or later, when the "
    "subscription may have been closed"
)
"""What is added to a finding about a subscriber that `Wire.may_have_left_at` a position."""


@dataclass(frozen=True)
class FrameSequence:
    """DATA and PAD frames of one direction in one capture, in chronological order."""

    frames: Frames
    starts: NDArray[np.int64]
    "Position of each frame's first byte."
    ends: NDArray[np.int64]
    "Position just after each frame, including its alignment."

    def where(self, which: NDArray[np.bool_]) -> "FrameSequence":
        """Return the frames that a mask selects."""
        return FrameSequence(self.frames[which], self.starts[which], self.ends[which])


@dataclass(frozen=True)
class Wire:
    """One stream as seen in the captures at both of its hosts."""

    facts: StreamFacts
    sender_buf: NDArray[np.uint8]
    "The sending host's capture file; `sent.frames['at']` are offsets into it."
    sent: FrameSequence
    arrived: FrameSequence
    forged: FrameSequence
    "Frames that arrived with the publisher's address, but that no publisher had sent."
    heartbeats_sent: Frames
    "Heartbeats as they left the publisher's host."
    heartbeats_arrived: Frames
    "Heartbeats as they reached the subscriber's host."
    heartbeat_positions: NDArray[np.int64]
    "Positions of the arrived heartbeats, in chronological order."
    heartbeat_times_ns: NDArray[np.int64]
    feedback_sent: Frames
    "SM and NAK frames as they left the subscriber's host."
    feedback_of_image: Frames
    "The same frames to all publications of the session that share the image."
    feedback_arrived: Frames
    """SM and NAK frames as they arrived at the publisher's host, including forged frames, but not
    frames that the publisher's driver must reject as invalid."""
    feedback_arrived_from_all: Frames
    """The same frames from all of the stream's subscribers, which includes unknown ones if the
    stream is observed: a publication with several destinations retransmits to all of them."""

    def arrived_at(self, port: int | None) -> FrameSequence:
        """Return the frames that arrived at one port of the subscriber, or all if it is None."""
        return self.arrived.where(of_port(self.arrived.frames, port))

    def may_have_left_at(self, position: int, closing_ns: int = CLOSING_NS) -> bool:
        """Return whether all frames and heartbeats beyond a position arrived when the subscription
        of the image may have been closed: less than `closing_ns` before its last status message or
        NAK, or later. Status messages with EOS do not count.
        """
        beyond_ns = np.concatenate(
            [
                self.arrived.frames["time_ns"][self.arrived.ends > position].astype(np.int64),
                self.heartbeat_times_ns[self.heartbeat_positions > position],
            ]
        )
        feedback = self.feedback_of_image
        is_eos = (feedback["frame_type"] == SM) & (feedback["flags"] & SM_FLAG_END_OF_STREAM != 0)
        last_ns = int(feedback["time_ns"][~is_eos].max(initial=0))
        return len(beyond_ns) > 0 and last_ns - closing_ns < int(beyond_ns.min())

    def naks(self, frames: Frames) -> Frames:
        """Return the NAKs among the given frames."""
        picked: Frames = frames[frames["frame_type"] == NAK]
        return picked

    def nak_positions(self, naks: Frames) -> NDArray[np.int64]:
        """Return the start position of each NAK."""
        return positions(naks, self.facts.initial_term_id, self.facts.term_length)

    def nak_ranges(self, naks: Frames) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the start and the end position of each NAK's range."""
        starts = self.nak_positions(naks)
        return starts, starts + naks["nak_length"].astype(np.int64)

    def end_of_stream_heartbeats(
        self, heartbeat_frames: Frames
    ) -> tuple[Frames, NDArray[np.int64]]:
        """Return the EOS heartbeats among the given heartbeats, and their positions."""
        ends = heartbeat_frames[(heartbeat_frames["flags"] & FLAG_END_OF_STREAM) != 0]
        return ends, positions(ends, self.facts.initial_term_id, self.facts.term_length)

    def first_end_ns(self, heartbeat_frames: Frames, latest_ns: int) -> int:
        """Return when the first of the given heartbeats that is an EOS heartbeat was captured, or
        `latest_ns` if that is earlier, or if there is none.
        """
        ends, _ = self.end_of_stream_heartbeats(heartbeat_frames)
        return int(ends["time_ns"].min(initial=latest_ns))

    def max_window_bytes(self) -> int:
        """Return the largest receiver window in the status messages sent."""
        windows = self.feedback_sent[self.feedback_sent["frame_type"] == SM]["window_bytes"]
        return int(windows.max(initial=0))

    def retransmitted(self) -> NDArray[np.bool_]:
        """Return a mask of the sent frames that are not new."""
        _, first = np.unique(self.sent.starts, return_index=True)
        again = np.ones(len(self.sent.starts), dtype=np.bool_)
        again[first] = False
        return again

    def sent_once(self) -> "Wire":
        """Return the stream without the copies of what was sent to another port of the subscriber's
        host, for another destination of the publication.
        """
        return replace(self, sent=self.sent.where(~of_other_port(self.sent.frames)))


OtherPublishers = Sequence[tuple[str, Capture]]
"""Hosts and captures of a stream's other publishers."""


def wire_of(
    near: Capture, far: Capture, case: Case, traffic: TrafficCase, beside: OtherPublishers = ()
) -> Wire | None:
    """Return a stream as seen in the captures at both of its hosts, or None if its publisher sent
    no SETUP.
    """
    facts = _stream_facts(near, case, traffic)
    return None if facts is None else _wire(facts, near, far, case, traffic, beside)


def _stream_facts(near: Capture, case: Case, traffic: TrafficCase) -> StreamFacts | None:
    """Return the parameters in the SETUP of a stream's last session, or None if no valid SETUP was
    captured.
    """
    setups = near.frames[near.frames["frame_type"] == SETUP]
    setups = setups[sent_by(setups, case.address(traffic.from_host))]
    setups = of_publication(setups, traffic)
    streams = learn_streams(setups[setups["stream_id"] == traffic.stream_id])
    usable = [facts for facts in streams.values() if facts.term_length > 0]
    if traffic.session_id is not None:
        usable = [facts for facts in usable if facts.session_id == traffic.session_id]
    return usable[-1] if usable else None


def _wire(
    facts: StreamFacts,
    near: Capture,
    far: Capture,
    case: Case,
    traffic: TrafficCase,
    beside: OtherPublishers,
) -> Wire:
    near_frames = of_stream(near.frames, facts.session_id, facts.stream_id)
    far_frames = of_stream(far.frames, facts.session_id, facts.stream_id)
    if _has_other_positions(near_frames, facts):
        # Another publication of the session has an image of its own.
        near_frames = near_frames[within(near_frames, traffic.session_span_ns)]
        far_frames = far_frames[within(far_frames, traffic.session_span_ns)]
    publisher = case.address(traffic.from_host)
    subscriber = case.address(traffic.to_host)
    sent = near_frames[between(near_frames, publisher, subscriber)]
    known = _pairs(_stretch(sent, facts))
    sent = of_publication(sent, traffic)
    if is_copied(near.frames, case, traffic):
        sent = without_copies(sent)
    from_publishers = sent_by(far_frames, publisher)
    for host, capture in beside:
        address = case.address(host)
        frames = of_stream(capture.frames, facts.session_id, facts.stream_id)
        known |= _pairs(_stretch(frames[between(frames, address, subscriber)], facts))
        from_publishers |= sent_by(far_frames, address)
    arrived = far_frames[from_publishers]
    genuine, forged = _parted(_stretch(arrived, facts), known)
    heartbeat_frames = heartbeats(arrived)
    replies = far_frames[between(far_frames, subscriber, publisher)]
    of_path = of_publication(near_frames, traffic)
    return Wire(
        facts=facts,
        sender_buf=near.buf,
        sent=_stretch(sent, facts),
        arrived=genuine,
        forged=forged,
        heartbeats_sent=heartbeats(sent),
        heartbeats_arrived=heartbeat_frames,
        heartbeat_positions=positions(heartbeat_frames, facts.initial_term_id, facts.term_length),
        heartbeat_times_ns=heartbeat_frames["time_ns"].astype(np.int64),
        feedback_sent=_feedback(of_publication(replies, traffic)),
        feedback_of_image=_feedback(replies),
        feedback_arrived=_sound(_feedback(of_path[sent_by(of_path, subscriber)]), facts),
        feedback_arrived_from_all=_sound(
            _feedback(near_frames[_from_readers(near_frames, case, traffic)]), facts
        ),
    )


def is_copied(near: Frames, case: Case, traffic: TrafficCase) -> bool:
    """Return whether a publication, given its host's capture, may have sent each datagram more than
    once to one address: its destinations are dynamic, and its receiver's driver was restarted.
    """
    if parse_channel(traffic.channel).control_mode != DYNAMIC:
        return False
    from_receiver = near[
        between(near, case.address(traffic.to_host), case.address(traffic.from_host))
    ]
    return has_returned(from_receiver)


def _has_other_positions(frames: Frames, facts: StreamFacts) -> bool:
    """Return whether a SETUP among the frames of a session leads to other positions."""
    setups = frames[frames["frame_type"] == SETUP]
    is_other = setups["initial_term_id"] != facts.initial_term_id
    return bool((is_other | (setups["term_length"] != facts.term_length)).any())


def _from_readers(frames: Frames, case: Case, traffic: TrafficCase) -> NDArray[np.bool_]:
    """Return a mask of the frames from all subscribers of a stream. Those of an observed one are
    unknown, and so are their destinations.
    """
    if traffic.observed:
        return sent_to(frames, case.address(traffic.from_host))
    found = np.zeros(len(frames), dtype=np.bool_)
    for host in traffic.subscribers:
        found |= sent_by(frames, case.address(host))
    return found


def _stretch(frames: Frames, facts: StreamFacts) -> FrameSequence:
    chosen = positional(frames)
    chosen = chosen[np.argsort(chosen["time_ns"], kind="stable")]
    starts = positions(chosen, facts.initial_term_id, facts.term_length)
    return FrameSequence(chosen, starts, starts + aligned_lengths(chosen["frame_length"]))


def _pairs(sent: FrameSequence) -> set[tuple[int, int]]:
    return {*zip(sent.starts.tolist(), sent.ends.tolist(), strict=True)}


def _parted(
    arrived: FrameSequence, known: set[tuple[int, int]]
) -> tuple[FrameSequence, FrameSequence]:
    """Split the arrived frames into frames that a publisher's host sent, and forged or corrupted
    frames.

    A frame is identified by its start position and its length field.
    """
    pairs = zip(arrived.starts.tolist(), arrived.ends.tolist(), strict=True)
    is_known = np.fromiter((pair in known for pair in pairs), np.bool_, len(arrived.starts))
    return arrived.where(is_known), arrived.where(~is_known)


def _feedback(frames: Frames) -> Frames:
    kinds = frames["frame_type"]
    picked: Frames = frames[(kinds == NAK) | (kinds == SM)]
    return picked


def _sound(feedback: Frames, facts: StreamFacts) -> Frames:
    picked: Frames = feedback[~unsound(feedback, np.full(len(feedback), facts.term_length))]
    return picked


def unsound(feedback: Frames, term_lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of the SM and NAK frames whose fields are invalid for their term length.

    A driver only counts these frames as invalid. Source: specification 1.4, 1.5.
    """
    kinds, offsets = feedback["frame_type"], feedback["term_offset"].astype(np.int64)
    outside = (offsets < 0) | (offsets >= term_lengths) | (offsets % FRAME_ALIGNMENT != 0)
    asked = feedback["nak_length"].astype(np.int64)
    window = feedback["window_bytes"].astype(np.int64)
    beyond = (asked < 0) | (offsets + asked > term_lengths)
    wide = (window < 0) | (window > term_lengths // 2)
    found: NDArray[np.bool_] = (kinds == NAK) & (outside | beyond)
    found |= (kinds == SM) & (outside | wide)
    return found


def status_messages(frames: Frames) -> Frames:
    """Return the status messages among the given frames, excluding mere requests for a SETUP."""
    picked: Frames = frames[
        (frames["frame_type"] == SM) & ((frames["flags"] & SM_FLAG_SEND_SETUP) == 0)
    ]
    return picked
