"""Estimates from a receiver's NAKs in one capture how many transmissions of a frame were lost.

    NAK  NAK  NAK  NAK ........ NAK  frame      a retransmit was lost, and the sender ignored NAKs
     |<---- without answer ----->|              for what it had just sent again (its linger)
                                 |<-- answer

The number of NAKs is not that of losses: a receiver repeats NAKs many times in one linger, and NAKs
may be lost, too.
"""

from __future__ import annotations

import math

import numpy as np

from windtunnel.harness.artifact.middlebox.frame_class import NAK, SM
from windtunnel.harness.replay.sightings import Stream

END_OF_TIME_NS = (1 << 62) - 1
_RUN_MAX = 8
"""Most retransmits of a frame that are said to be lost, if no other frames show the loss rate."""


class Naks:
    """A stream's NAKs, and the repair and round-trip times estimated from them."""

    def __init__(self, stream: Stream) -> None:
        naks = stream.feedback[stream.feedback["frame_type"] == NAK]
        self._naks = naks[np.argsort(naks["time_ns"], kind="stable")]
        messages = stream.feedback[stream.feedback["frame_type"] == SM]
        self.consumed_position = int(messages["position"].max(initial=-1))
        self._repair_ns = self.fastest_ns = 0
        requests = self._repairs(stream)
        self.has_repairs = len(requests) > 0
        if self.has_repairs:
            waits_ns = [until_ns - times[0] for times, until_ns in requests]
            self._repair_ns, self.fastest_ns = int(np.median(waits_ns)), min(waits_ns)
        self._in_group = stream.in_group
        unanswered_ns = [self._unanswered_ns(*each) for each in requests]
        waits_ns = [each for each in unanswered_ns if each]
        self._usual_ns = _usual_ns(waits_ns)
        self._most = _longest_run(len(waits_ns), len(requests))
        lingers_ns = [
            wait_ns
            for wait_ns, (times, _) in zip(unanswered_ns, requests, strict=True)
            if self._separate(times) > max(_RUN_MAX, 2 * self._most)
        ]
        self._linger_ns = min(lingers_ns, default=0)
        """Time in which the sender ignored more NAKs than can have been lost, or 0 if unknown."""
        self.round_trip_ns = self._round_trip_ns(stream)
        """Shortest time from a frame that reveals a gap to the NAK for the gap, or 0 if unknown."""

    def rounds(self, position: int, until_ns: int) -> int:
        """Count how often a retransmission of a position was requested until a time.

        NAKs that follow each other within half the usual time until the retransmission count as
        one. A NAK that was sent just before the retransmission arrived cannot have caused it, and
        does not count. In a multicast group, NAKs may come from several members, so all of them
        count as one.
        """
        causes = self._causes(self._times(position, 0, until_ns), until_ns)
        return min(1, len(causes)) if self._in_group else self._separate(causes)

    def losses(self, position: int, until_ns: int) -> int:
        """Estimate how many transmissions of a position were lost before one arrived at a time.

        The first NAK shows one loss. If the time from there to the NAK that was answered is longer
        than an answer takes, more were lost: as many as this time has the usual length of such
        times, and no more than may be lost in a row at the share of frames whose first NAK had no
        answer. If the sender is known to ignore NAKs for some time, a shorter wait shows a lost NAK
        and no further loss. In a multicast group, NAKs may come from several members, so they show
        one loss.
        """
        times = self._times(position, 0, until_ns)
        wait_ns = self._unanswered_ns(times, until_ns) if times else 0
        if not wait_ns or self._in_group:
            return min(1, len(times))
        if self._linger_ns:
            return 1 + min(self._most, round(wait_ns / self._linger_ns))
        usual_ns = self._usual_ns or wait_ns
        return 1 + min(self._most, max(1, round(wait_ns / usual_ns)))

    def _unanswered_ns(self, times: list[int], until_ns: int) -> int:
        """Return the time from the first NAK for a frame that arrived to the NAK that this answers,
        or 0 if it answers the first one.
        """
        wait_ns = self._causes(times, until_ns)[-1] - times[0]
        return wait_ns if wait_ns >= self._repair_ns // 2 else 0

    def _causes(self, times: list[int], until_ns: int) -> list[int]:
        """Return the NAKs that may have caused a retransmit, and at least the first one."""
        return [each for each in times if until_ns - each >= self.fastest_ns] or times[:1]

    def _separate(self, times: list[int]) -> int:
        """Count NAKs that are at least half the usual time until a retransmit apart."""
        count, last_ns = 0, -END_OF_TIME_NS
        for time_ns in times:
            if time_ns - last_ns >= self._repair_ns // 2:
                count, last_ns = count + 1, time_ns
        return count

    def last_ns(self, position: int) -> int:
        """Return the time of the last NAK for a position, or a time before all others if there was
        no NAK.
        """
        times = self._times(position, -END_OF_TIME_NS, END_OF_TIME_NS)
        return times[-1] if times else -END_OF_TIME_NS

    def _round_trip_ns(self, stream: Stream) -> int:
        frames = stream.transmissions
        is_first = frames["position"] >= np.maximum.accumulate(
            np.append(0, (frames["position"] + frames["length"])[:-1])
        )
        ends = self._naks["position"] + self._naks["length"]
        known = []
        for rows in (frames[is_first], stream.heartbeats):
            reach = np.maximum.accumulate(rows["position"])
            times = np.append(rows["time_ns"], END_OF_TIME_NS)
            known.append(times[np.searchsorted(reach, ends, side="left")])
        waits = self._naks["time_ns"] - np.minimum(*known)
        return int(waits[waits >= 0].min(initial=END_OF_TIME_NS)) if (waits >= 0).any() else 0

    def _times(self, position: int, after_ns: int, until_ns: int) -> list[int]:
        times = self._naks["time_ns"]
        # If a NAK and a frame have the same timestamp, the NAK is taken as the earlier one.
        first, end = np.searchsorted(times, (after_ns, until_ns), side="right")
        naks = self._naks[first:end]
        starts = naks["position"]
        covers = (starts <= position) & (position < starts + naks["length"])
        found: list[int] = naks["time_ns"][covers].tolist()
        return found

    def _repairs(self, stream: Stream) -> list[tuple[list[int], int]]:
        """Return the times of the NAKs for each retransmitted frame, and of its retransmit."""
        found: list[tuple[list[int], int]] = []
        passed_ns: dict[int, int] = {}
        highest = 0
        for time_ns, position, length, *_ in stream.transmissions.tolist():
            if position in passed_ns or position < highest:
                naks = self._times(position, passed_ns.get(position, 0), time_ns)
                found += [(naks, time_ns)] if naks else []
            passed_ns[position] = time_ns
            highest = max(highest, position + length)
        return found


def _usual_ns(waits_ns: list[int]) -> int:
    """Return the usual time without an answer if one retransmit was lost, or 0 if unknown. Lost
    NAKs make shorter waits, and further losses longer ones: two thirds of the waits are at most
    this long.
    """
    ordered = sorted(waits_ns)
    return ordered[(len(ordered) * 2 - 1) // 3] if ordered else 0


def _longest_run(lost: int, of: int) -> int:
    """Return how many losses in a row are to be expected in the longest of several runs, if
    independent losses are as frequent as the given number of a total.
    """
    if not lost or lost == of:
        return _RUN_MAX
    return max(1, math.ceil(math.log(of) / math.log(of / lost)))
