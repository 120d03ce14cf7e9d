"""The frames that answer those which a fault rule has matched, among the frames that left a host.

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

_SESSION = ("stream_id", "session_id")
_TERM = (*_SESSION, "term_id")


class Answers:
    """The frames of one type that a host has sent, as answers to frames that a rule has matched."""

    def __init__(self, sent: Frames, then: str) -> None:
        """Take the frames of type `then` among those that a host has sent."""
        kinds = sent["frame_type"]
        wanted = kinds == CODES[then]
        if then == "DATA":
            wanted |= kinds == PAD
        frames = sent[wanted]
        frames = frames[np.argsort(frames["time_ns"], kind="stable")]
        self._empty = frames[:0]
        self._length = "nak_length" if then == "NAK" else "frame_length"
        self._has_ranges = then in WITH_RANGE
        self._of_session = _grouped(frames, _SESSION)
        # A range never crosses the end of a term, so term and offset decide without the stream's
        # parameters.
        self._of_term = _grouped(frames, _TERM) if self._has_ranges else {}

    def times_ns(self, met: Any, due_ns: int | None = None) -> NDArray[np.int64]:
        """Return the times of all answers to the frame of a decision, or of those until `due_ns`,
        in order.
        """
        is_placed = self._has_ranges and int(met["position"]) != NO_POSITION
        groups, names = (self._of_term, _TERM) if is_placed else (self._of_session, _SESSION)
        frames = groups.get(tuple(int(met[name]) for name in names), self._empty)
        times_ns = frames["time_ns"]
        first = int(np.searchsorted(times_ns, met["time_ns"], side="right"))
        last = len(frames) if due_ns is None else int(np.searchsorted(times_ns, due_ns, "right"))
        frames = frames[first : max(first, last)]
        if is_placed:
            starts = frames["term_offset"].astype(np.int64)
            ends = starts + aligned_lengths(frames[self._length])
            start, length = int(met["term_offset"]), int(met["frame_length"])
            frames = frames[(starts <= start) & (ends >= start + length)]
        found: NDArray[np.int64] = frames["time_ns"].astype(np.int64)
        return found


def _grouped(frames: Frames, names: tuple[str, ...]) -> dict[tuple[int, ...], Frames]:
    """Return the frames by the values of some of their fields, each group in the same order."""
    order = np.lexsort([frames[name] for name in reversed(names)])
    keys = frames[[*names]][order]
    if not len(keys):
        return {}
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    groups = np.split(frames[order], starts[1:])
    return {tuple(map(int, keys[at])): group for at, group in zip(starts, groups, strict=True)}


def met_between(decisions: Records, rule: int, links: list[int]) -> Records:
    """Return a rule's decisions about frames on the given link directions, in their order."""
    chosen = (decisions["rule"] == rule) & np.isin(decisions["link"], links)
    picked: Records = decisions[chosen]
    return picked
