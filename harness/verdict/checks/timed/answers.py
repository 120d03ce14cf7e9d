"""The frames that answer those which a fault rule has met, among the frames that left a host.

    rule meets DATA 4096..5504        time |---------- within ----------|
    NAKs that leave b for a               4096..5504    4096..6912         8192..9600
                                          answers       answers            another range, too late

A NAK answers if its range contains that of the frame, and a DATA or PAD frame if it contains the
frame's range. Frames of other types, and any to a frame without a range, answer if they are of the
same session.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.decision import NO_POSITION
from windtunnel.harness.artifact.middlebox.frame_class import CODES, PAD
from windtunnel.harness.artifact.records import Records
from windtunnel.harness.dissect.frames.flow import aligned_lengths
from windtunnel.harness.dissect.frames.frames import Frames
from windtunnel.harness.scenario.frame_expectation import WITH_RANGE

_Session = tuple[int, int]


class Answers:
    """The frames of one type that a host has sent, as answers to frames that a rule has met."""

    def __init__(self, sent: Frames, then: str) -> None:
        """Take the frames of type `then` among those that a host has sent."""
        kinds = sent["frame_type"]
        wanted = kinds == CODES[then]
        if then == "DATA":
            wanted |= kinds == PAD
        frames = sent[wanted]
        frames = frames[np.argsort(frames["time_ns"], kind="stable")]
        self._has_ranges = then in WITH_RANGE
        self._length = "nak_length" if then == "NAK" else "frame_length"
        self._empty = frames[:0]
        self._of_session: dict[_Session, Frames] = {
            session: frames[
                (frames["stream_id"] == session[0]) & (frames["session_id"] == session[1])
            ]
            for session in set(np.unique(frames[["stream_id", "session_id"]]).tolist())
        }

    def count(self, met: Any, due_ns: int) -> int:
        """Return the number of answers to the frame of a decision, until `due_ns`."""
        frames = self._later(met)
        in_time = int(np.searchsorted(frames["time_ns"], due_ns, side="right"))
        return int(self._matches(frames[:in_time], met).sum())

    def first_ns(self, met: Any) -> int | None:
        """Return the time of the first answer to the frame of a decision, or None."""
        frames = self._later(met)
        found = frames[self._matches(frames, met)]
        return int(found["time_ns"][0]) if len(found) else None

    def _later(self, met: Any) -> Frames:
        """Return the frames of the decision's session that left after it."""
        session = int(met["stream_id"]), int(met["session_id"])
        frames = self._of_session.get(session, self._empty)
        picked: Frames = frames[np.searchsorted(frames["time_ns"], met["time_ns"], side="right") :]
        return picked

    def _matches(self, frames: Frames, met: Any) -> NDArray[np.bool_]:
        if not self._has_ranges or int(met["position"]) == NO_POSITION:
            return np.ones(len(frames), dtype=np.bool_)
        # A range never crosses the end of a term, so term and offset decide without the stream's
        # parameters.
        starts = frames["term_offset"].astype(np.int64)
        ends = starts + aligned_lengths(frames[self._length])
        start, length = int(met["term_offset"]), int(met["frame_length"])
        found: NDArray[np.bool_] = (frames["term_id"] == met["term_id"]) & (starts <= start)
        return found & (ends >= start + length)


def met_between(decisions: Records, rule: int, links: list[int]) -> Records:
    """Return a rule's decisions about frames on the given link directions, in their order."""
    chosen = (decisions["rule"] == rule) & np.isin(decisions["link"], links)
    picked: Records = decisions[chosen]
    return picked
