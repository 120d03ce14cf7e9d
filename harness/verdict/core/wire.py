"""One stream as two captures saw it: what each host sent and what reached the other.

    publisher's capture    sent ------> arrived        subscriber's capture
                           answered <-- answering
                         & answered by all its readers

Of a stream with several readers it is the way to one of them. Of one with several publishers
`arrived` holds what came from any, since all of it makes one image.

Its session, initial term id and term length are those of its SETUP frames, not what a process said
of itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import NAK, SETUP, SM
from windtunnel.harness.dissect.capture.pcap import Capture, sent_by
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
from windtunnel.harness.dissect.frames.layout import FLAG_END_OF_STREAM
from windtunnel.harness.dissect.frames.route import between
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase


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
    forged: Stretch
    "What reached the subscriber's host in the publisher's name though nobody had sent it so."
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
    answered_by_all: Frames
    "The same of all the stream's subscribers."

    def naks(self, frames: Frames) -> Frames:
        """The NAKs among them."""
        picked: Frames = frames[frames["frame_type"] == NAK]
        return picked

    def nak_positions(self, naks: Frames) -> NDArray[np.int64]:
        """Position of the first byte that each NAK asks for."""
        return positions(naks, self.facts.initial_term_id, self.facts.term_length)

    def ends_told(self, beats: Frames) -> tuple[Frames, NDArray[np.int64]]:
        """The heartbeats that tell the end of the stream, and where."""
        told = beats[(beats["flags"] & FLAG_END_OF_STREAM) != 0]
        return told, positions(told, self.facts.initial_term_id, self.facts.term_length)

    def widest_window_bytes(self) -> int:
        """The widest window that the reader's host has told a sender."""
        told = self.answering[self.answering["frame_type"] == SM]["window_bytes"]
        return int(told.max(initial=0))

    def resent(self) -> NDArray[np.bool_]:
        """Which of the sent frames had been sent before."""
        _, first = np.unique(self.sent.starts, return_index=True)
        again = np.ones(len(self.sent.starts), dtype=np.bool_)
        again[first] = False
        return again


Beside = Sequence[tuple[str, Capture]]
"""The further publishers of a stream: their hosts, and what was captured there."""


def wire_of(
    near: Capture, far: Capture, case: Case, traffic: TrafficCase, beside: Beside = ()
) -> Wire | None:
    """The stream of a traffic on both captures, or None when it sent no SETUP."""
    facts = _stream_facts(near, case, traffic)
    return None if facts is None else _wire(facts, near, far, case, traffic, beside)


def _stream_facts(near: Capture, case: Case, traffic: TrafficCase) -> StreamFacts | None:
    """What the last SETUP of the stream said; a stream id belongs to one traffic of a case."""
    setups = near.frames[near.frames["frame_type"] == SETUP]
    setups = setups[sent_by(setups, case.address(traffic.from_host))]
    streams = learn_streams(setups[setups["stream_id"] == traffic.stream_id])
    usable = [facts for facts in streams.values() if facts.term_length > 0]
    return usable[-1] if usable else None


def _wire(
    facts: StreamFacts,
    near: Capture,
    far: Capture,
    case: Case,
    traffic: TrafficCase,
    beside: Beside,
) -> Wire:
    near_frames = of_stream(near.frames, facts.session_id, facts.stream_id)
    far_frames = of_stream(far.frames, facts.session_id, facts.stream_id)
    publisher = case.address(traffic.from_host)
    subscriber = case.address(traffic.to_host)
    sent = near_frames[between(near_frames, publisher, subscriber)]
    stretch = _stretch(sent, facts)
    known = _pairs(stretch)
    came = sent_by(far_frames, publisher)
    for host, capture in beside:
        address = case.address(host)
        frames = of_stream(capture.frames, facts.session_id, facts.stream_id)
        known |= _pairs(_stretch(frames[between(frames, address, subscriber)], facts))
        came |= sent_by(far_frames, address)
    arrived = far_frames[came]
    genuine, forged = _parted(_stretch(arrived, facts), known)
    beats = heartbeats(arrived)
    readers = np.zeros(len(near_frames), dtype=np.bool_)
    for host in traffic.subscribers:
        readers |= sent_by(near_frames, case.address(host))
    return Wire(
        facts=facts,
        sender_buf=near.buf,
        sent=stretch,
        arrived=genuine,
        forged=forged,
        beats_sent=heartbeats(sent),
        beats_arrived=beats,
        heartbeats_arrived=positions(beats, facts.initial_term_id, facts.term_length),
        heartbeat_times_ns=beats["time_ns"].astype(np.int64),
        answering=_feedback(far_frames[between(far_frames, subscriber, publisher)]),
        answered=_sound(_feedback(near_frames[sent_by(near_frames, subscriber)]), facts),
        answered_by_all=_sound(_feedback(near_frames[readers]), facts),
    )


def _stretch(frames: Frames, facts: StreamFacts) -> Stretch:
    chosen = positional(frames)
    chosen = chosen[np.argsort(chosen["time_ns"], kind="stable")]
    starts = positions(chosen, facts.initial_term_id, facts.term_length)
    return Stretch(chosen, starts, starts + aligned_lengths(chosen["frame_length"]))


def _pairs(sent: Stretch) -> set[tuple[int, int]]:
    return {*zip(sent.starts.tolist(), sent.ends.tolist(), strict=True)}


def _parted(arrived: Stretch, known: set[tuple[int, int]]) -> tuple[Stretch, Stretch]:
    """What the publisher's host has sent; and forged frames, and what damage has displaced.

    A frame is known by where it begins and how long it says that it is.
    """
    pairs = zip(arrived.starts.tolist(), arrived.ends.tolist(), strict=True)
    is_known = np.fromiter((pair in known for pair in pairs), np.bool_, len(arrived.starts))
    return _picked(arrived, is_known), _picked(arrived, ~is_known)


def _picked(stretch: Stretch, which: NDArray[np.bool_]) -> Stretch:
    return Stretch(stretch.frames[which], stretch.starts[which], stretch.ends[which])


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
