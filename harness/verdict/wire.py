"""One stream as two captures saw it: what each host sent and what reached the other.

    publisher's capture    sent ------> arrived        subscriber's capture
                           answered <-- answering

Its session, initial term id and term length are those of its SETUP frames, not what a process said
of itself.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.artifact.frame_class import NAK, SETUP, SM
from harness.dissect.flow import (
    StreamFacts,
    aligned_lengths,
    heartbeats,
    learn_streams,
    of_stream,
    positional,
    positions,
)
from harness.dissect.frames import FRAME_ALIGNMENT, Frames
from harness.dissect.pcap import Capture, sent_by
from harness.scenario.case import Case, TrafficCase


@dataclass(frozen=True)
class Stretch:
    """DATA and PAD frames of one direction at one capture, in order of time."""

    frames: Frames
    starts: NDArray[np.int64]
    "Position of each frame's first byte."
    ends: NDArray[np.int64]
    "Position just after it, alignment included."


@dataclass(frozen=True)
class Wire:
    """One stream on both captures."""

    facts: StreamFacts
    sender_buf: NDArray[np.uint8]
    "The sending host's capture file; `sent.frames['at']` are offsets into it."
    sent: Stretch
    arrived: Stretch
    beats_sent: Frames
    "Heartbeats as they left the publisher's host."
    beats_arrived: Frames
    "Heartbeats as they reached the subscriber's host."
    heartbeats_arrived: NDArray[np.int64]
    "Positions that heartbeats told the receiver, in order of time."
    heartbeat_times_ns: NDArray[np.int64]
    answering: Frames
    "SM and NAK frames as they left the subscriber's host."
    answered: Frames
    "SM and NAK frames as they reached the publisher's host; forged ones, too, but none that its"
    "driver must refuse by its bytes."

    def naks(self, frames: Frames) -> Frames:
        """The NAKs among them."""
        picked: Frames = frames[frames["frame_type"] == NAK]
        return picked

    def nak_positions(self, naks: Frames) -> NDArray[np.int64]:
        """Position of the first byte that each NAK asks for."""
        return positions(naks, self.facts.initial_term_id, self.facts.term_length)

    def resent(self) -> NDArray[np.bool_]:
        """Which of the sent frames had been sent before."""
        _, first = np.unique(self.sent.starts, return_index=True)
        again = np.ones(len(self.sent.starts), dtype=np.bool_)
        again[first] = False
        return again


def wire_of(near: Capture, far: Capture, case: Case, traffic: TrafficCase) -> Wire | None:
    """The stream of a traffic on both captures, or None when it sent no SETUP."""
    facts = _stream_facts(near, case, traffic)
    return None if facts is None else _wire(facts, near, far, case, traffic)


def _stream_facts(near: Capture, case: Case, traffic: TrafficCase) -> StreamFacts | None:
    """What the last SETUP of the stream said; a stream id belongs to one traffic of a case."""
    setups = near.frames[near.frames["frame_type"] == SETUP]
    setups = setups[sent_by(setups, case.address(traffic.from_host))]
    streams = learn_streams(setups[setups["stream_id"] == traffic.stream_id])
    usable = [facts for facts in streams.values() if facts.term_length > 0]
    return usable[-1] if usable else None


def _wire(
    facts: StreamFacts, near: Capture, far: Capture, case: Case, traffic: TrafficCase
) -> Wire:
    near_frames = of_stream(near.frames, facts.session_id, facts.stream_id)
    far_frames = of_stream(far.frames, facts.session_id, facts.stream_id)
    publisher = case.address(traffic.from_host)
    subscriber = case.address(traffic.to_host)
    sent = near_frames[sent_by(near_frames, publisher)]
    stretch = _stretch(sent, facts)
    arrived = far_frames[sent_by(far_frames, publisher)]
    beats = heartbeats(arrived)
    return Wire(
        facts=facts,
        sender_buf=near.buf,
        sent=stretch,
        arrived=_genuine(_stretch(arrived, facts), stretch),
        beats_sent=heartbeats(sent),
        beats_arrived=beats,
        heartbeats_arrived=positions(beats, facts.initial_term_id, facts.term_length),
        heartbeat_times_ns=beats["time_ns"].astype(np.int64),
        answering=_feedback(far_frames[sent_by(far_frames, subscriber)]),
        answered=_sound(_feedback(near_frames[sent_by(near_frames, subscriber)]), facts),
    )


def _stretch(frames: Frames, facts: StreamFacts) -> Stretch:
    chosen = positional(frames)
    chosen = chosen[np.argsort(chosen["time_ns"], kind="stable")]
    starts = positions(chosen, facts.initial_term_id, facts.term_length)
    return Stretch(chosen, starts, starts + aligned_lengths(chosen["frame_length"]))


def _genuine(arrived: Stretch, sent: Stretch) -> Stretch:
    """What the publisher's host has sent: without forged frames, and what damage has displaced.

    A frame is known by where it begins and how long it says that it is.
    """
    known = {*zip(sent.starts.tolist(), sent.ends.tolist(), strict=True)}
    pairs = zip(arrived.starts.tolist(), arrived.ends.tolist(), strict=True)
    is_known = np.fromiter((pair in known for pair in pairs), np.bool_, len(arrived.starts))
    if is_known.all():
        return arrived
    return Stretch(arrived.frames[is_known], arrived.starts[is_known], arrived.ends[is_known])


def _feedback(frames: Frames) -> Frames:
    kinds = frames["frame_type"]
    picked: Frames = frames[(kinds == NAK) | (kinds == SM)]
    return picked


def _sound(feedback: Frames, facts: StreamFacts) -> Frames:
    picked: Frames = feedback[~unsound(feedback, np.full(len(feedback), facts.term_length))]
    return picked


def unsound(feedback: Frames, term_lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which SM and NAK frames name what cannot be in a term of that length.

    A driver counts such a frame as invalid, and as nothing else. Source: specification 1.4, 1.5.
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
