"""What a capture shows of the sender's pace, the receiver's window and the path, for a scenario.

    pace         message bytes per second, from the first to the last frame in order
    window       of the status messages, the largest one
    round trip   two captures: both ways between them
                 one capture: from NAKs and retransmits, at any point of the path

What a capture does not show is left out, and a note says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from windtunnel.harness.artifact.middlebox.frame_class import DATA, SM
from windtunnel.harness.dissect.capture.capture_clock import CLOCK_STEP_NS
from windtunnel.harness.replay.frame_outcome import round_trip_ns
from windtunnel.harness.replay.sightings import Stream
from windtunnel.harness.replay.two_captures import round_trip_between_ns
from windtunnel.harness.scenario.schema.impairment import DELAY_MAX_NS
from windtunnel.harness.scenario.schema.units import (
    BILLION,
    BYTES_PER_SECOND_MAX,
    format_byte_rate,
    format_bytes,
    format_duration,
)

ROUND_TRIP_MIN_NS = 20_000
"""Shorter round trips are those of a lab without delays."""
DELAY_STEP_NS = 1_000
SILENCE_FACTOR = 10
"""A pause is mentioned if it is this many times longer than the mean time between messages."""


@dataclass(frozen=True)
class ObservedPath:
    """A stream's pace, window and round trip. 0 means that the captures do not show it."""

    bytes_per_s: int = 0
    lasts_ns: int = 0
    "Time from the first frame to the last one that is in order, without steps of the clock back."
    silence_ns: int = 0
    "Longest time between two frames in order."
    messages: int = 0
    window_bytes: int = 0
    least_window_bytes: int = 0
    round_trip_ns: int = 0
    is_stepped: bool = False
    "Whether the clock of the capture was stepped back."
    is_estimate: bool = False
    "Whether the round trip is an estimate from one capture, which exceeds the real one."

    @property
    def delay_ns(self) -> int:
        """Return the delay of one direction, or 0 if the round trip is unknown or negligible."""
        if self.round_trip_ns < ROUND_TRIP_MIN_NS:
            return 0
        half_ns = self.round_trip_ns // 2 // DELAY_STEP_NS * DELAY_STEP_NS
        return min(DELAY_MAX_NS, half_ns)

    def notes(self) -> Iterator[str]:
        """Yield what a scenario does not reproduce of the pace, the window and the path."""
        if not self.bytes_per_s:
            yield "its pace is unknown, so messages are sent as fast as possible"
        else:
            rate = format_byte_rate(self.bytes_per_s)
            text = f"its messages are sent at the capture's mean rate of {rate}"
            if self.silence_ns * self.messages > SILENCE_FACTOR * self.lasts_ns:
                text += f", without its pauses of up to {self.silence_ns / 1e6:,.1f} ms"
            yield text
        if self.is_stepped:
            yield "the capture's clock was stepped back, so its times may be wrong"
        if not self.window_bytes:
            yield "no status message was captured, so the receiver window is the default"
        elif self.least_window_bytes != self.window_bytes:
            least, most = map(format_bytes, (self.least_window_bytes, self.window_bytes))
            yield f"its receiver window varied from {least} to {most}, and is always {most} here"
        if not self.round_trip_ns:
            yield "the captures do not show its round trip, so packets are not delayed"
        elif self.is_estimate and self.delay_ns:
            trip = format_duration(2 * self.delay_ns)
            yield f"its round trip is at most {trip}, according to its NAKs and retransmits"


def observed_path(sightings: tuple[Stream, ...]) -> ObservedPath:
    """Return what one or two captures of a stream show of its pace, window and round trip."""
    stream = sightings[0]
    frames = stream.transmissions[stream.transmissions["frame_type"] == DATA]
    # A frame behind the farthest one is a retransmit, or late: its time is not that of the sender.
    ends = np.maximum.accumulate(frames["position"] + frames["length"])
    leads = frames["position"] >= np.append(0, ends[:-1]) if len(frames) else np.zeros(0, bool)
    leading = frames[leads]
    times_ns = leading["time_ns"]
    intervals_ns = np.diff(times_ns)
    is_step = intervals_ns <= -CLOCK_STEP_NS
    lasts_ns = max(0, int(intervals_ns[~is_step].sum()))
    _, first = np.unique(frames["position"], return_index=True)
    frames = frames[first]
    # The last message ends the time, and does not fill it.
    sent = int(frames["payload"][:-1].sum())
    windows = [each.feedback["window"][each.feedback["frame_type"] == SM] for each in sightings]
    found = np.concatenate(windows)
    found = found[found > 0]
    is_estimate = len(sightings) == 1
    trip_ns = round_trip_ns(stream) if is_estimate else round_trip_between_ns(*sightings)
    bytes_per_s = sent * BILLION // lasts_ns if lasts_ns else 0
    return ObservedPath(
        bytes_per_s=bytes_per_s if bytes_per_s <= BYTES_PER_SECOND_MAX else 0,
        lasts_ns=lasts_ns,
        silence_ns=int(intervals_ns.max(initial=0)),
        messages=len(times_ns),
        window_bytes=int(found.max(initial=0)),
        least_window_bytes=int(found.min()) if len(found) else 0,
        round_trip_ns=trip_ns,
        is_stepped=bool(is_step.any()),
        is_estimate=is_estimate,
    )
