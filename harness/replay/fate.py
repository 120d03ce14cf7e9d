"""What became of each frame of a stream between its sender and its receiver, by what captures show.

    two places   sent      s1 .. s2 .. s3        which passage arrived as which?
                 arrived        r2'     r3'      s1 was lost
    one place    a hole that a NAK asks for, and a later frame fills         attempt 1 was lost
                 the same frame again after a NAK                            it was lost behind here
                 the same frame again with no NAK                            a copy
                 a frame below the highest that nobody asked for             it was late

From two places each passage is followed, and clocks need not agree. From one place fates are
inferred: who asked once and got the frame once says that one transmission was lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import NAK, NAMES, SM
from windtunnel.harness.replay.rules import merged
from windtunnel.harness.replay.sightings import Stream

DROP, LATE, COPY = "drop", "late", "copy"
SLACK_NS = 50_000
"""By so much a frame may be faster than the fastest that was followed without doubt."""

END_OF_TIME_NS = (1 << 63) - 1


class Fate(NamedTuple):
    """What befell one passage of a frame."""

    what: str
    frame_type: str
    position: int
    length: int
    attempt: int
    delay_ns: int = 0
    """Of what was late, beyond the usual; of a copy, behind the first."""
    overtaken_by: int = 0
    """Frames of the stream that were sent later and arrived before it."""


Times = dict[int, list[int]]


def joined(near: Stream, far: Stream) -> list[Fate]:
    """The fates of all passages that left the near place, by what arrived at the far one."""
    base_ns, slack_ns = _transit(near, far)
    sent, arrived = _by_position(near.passages), _by_position(far.passages)
    first = {int(each["position"]): each for each in near.passages[::-1]}
    sent_order, arrival_order = _orders(near, far)
    found = []
    for position, departures in sent.items():
        frame = first[position]
        name, length = NAMES[int(frame["frame_type"])], int(frame["length"])
        matched, copies = match(departures, arrived.get(position, []), base_ns, slack_ns)
        for attempt, arrival_ns in enumerate(matched, 1):
            if arrival_ns is None:
                found.append(Fate(DROP, name, position, length, attempt))
                continue
            delay_ns = arrival_ns - departures[attempt - 1] - base_ns
            overtaken_by = _overtakers(
                sent_order, arrival_order, departures[attempt - 1], arrival_ns, base_ns, slack_ns
            )
            if overtaken_by and delay_ns > slack_ns:
                found.append(Fate(LATE, name, position, length, attempt, delay_ns, overtaken_by))
        for attempt, behind_ns in copies:
            found.append(Fate(COPY, name, position, length, attempt, behind_ns))
    return found


def match(
    departures: list[int], arrivals: list[int], base_ns: int, slack_ns: int
) -> tuple[list[int | None], list[tuple[int, int]]]:
    """Which departure each arrival is of.

    An arrival is of the last departure that it can be of and that is still free, so a frame is not
    taken for late if one that was sent again explains it.

    Returns: the arrival of each departure, None of those that were lost; and of each further
    arrival the attempt that it is a copy of, and how far behind it came
    """
    matched: list[int | None] = [None] * len(departures)
    copies = []
    for arrival_ns in arrivals:
        possible = [
            index
            for index, departed_ns in enumerate(departures)
            if departed_ns + base_ns - slack_ns <= arrival_ns
        ] or [0]
        free = [index for index in possible if matched[index] is None]
        if free:
            matched[free[-1]] = arrival_ns
        else:
            original = matched[possible[-1]]
            assert original is not None
            copies.append((possible[-1] + 1, arrival_ns - original))
    return matched, copies


def is_nearer(first: Stream, second: Stream) -> bool:
    """Whether the first place is nearer to the sender; the clocks of the two need not agree.

    What goes to and fro between two places takes as long as both ways, whatever their clocks say.
    """
    there = _differences(_by_position(first.passages), _by_position(second.passages))
    back = _differences(_by_feedback(second.feedback), _by_feedback(first.feedback))
    if len(there) and len(back):
        return float(np.median(there) + np.median(back)) > 0
    if len(first.passages) != len(second.passages):
        return len(first.passages) > len(second.passages)
    return not len(there) or float(np.median(there)) > 0


def _transit(near: Stream, far: Stream) -> tuple[int, int]:
    """The usual time between two places by their clocks, and how much less it may be."""
    found = _differences(_by_position(near.passages), _by_position(far.passages))
    if not len(found):
        return 0, SLACK_NS
    base_ns = int(np.median(found))
    return base_ns, base_ns - int(found.min()) + SLACK_NS


def _differences(before: Times, after: Times) -> NDArray[np.int64]:
    """How much later things are seen at the second place that are seen once at either."""
    return np.array(
        [
            after[name][0] - times[0]
            for name, times in before.items()
            if len(times) == 1 and len(after.get(name, ())) == 1
        ],
        dtype=np.int64,
    )


def _by_position(passages: NDArray[Any]) -> Times:
    found: Times = defaultdict(list)
    for position, time_ns in zip(
        passages["position"].tolist(), passages["time_ns"].tolist(), strict=True
    ):
        found[position].append(time_ns)
    return found


def _by_feedback(feedback: NDArray[Any]) -> Times:
    """Times of SMs and NAKs by what they say."""
    found: Times = defaultdict(list)
    columns = (feedback[name].tolist() for name in ("position", "length", "frame_type", "time_ns"))
    for position, length, kind, time_ns in zip(*columns, strict=True):
        found[hash((position, length, kind == SM))].append(time_ns)
    return found


def _orders(near: Stream, far: Stream) -> tuple[NDArray[Any], NDArray[Any]]:
    """First departures and first arrivals of the frames that were seen at both places."""
    sent, arrived = _by_position(near.passages), _by_position(far.passages)
    both = [
        (times[0], arrived[position][0]) for position, times in sent.items() if position in arrived
    ]
    pairs = np.array(sorted(both), dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _overtakers(
    departures: NDArray[Any],
    arrivals: NDArray[Any],
    departed_ns: int,
    arrival_ns: int,
    base_ns: int,
    slack_ns: int,
) -> int:
    """How many frames left after one and arrived before it."""
    first = int(np.searchsorted(departures, departed_ns, side="right"))
    last = int(np.searchsorted(departures, arrival_ns - base_ns + slack_ns, side="right"))
    return int(np.count_nonzero(arrivals[first:last] < arrival_ns))


def inferred(stream: Stream) -> list[Fate]:
    """The fates of a stream's frames by what one place shows."""
    passages = stream.passages
    asked = _Asked(stream)
    farthest = np.maximum.accumulate(passages["position"])
    times = passages["time_ns"].tolist()
    before: Times = {}
    found: list[Fate] = []
    highest = 0
    for index, row in enumerate(passages.tolist()):
        time_ns, position, length, _, kind, _ = row
        frame = NAMES[kind], position, length
        earlier = before.setdefault(position, [])
        if earlier:
            if asked.rounds(position, earlier[-1], time_ns):
                found.append(Fate(DROP, *frame, len(earlier)))
            else:
                found.append(Fate(COPY, *frame, len(earlier), time_ns - earlier[-1]))
        elif index and position < highest:
            rounds = asked.rounds(position, 0, time_ns)
            found += [Fate(DROP, *frame, attempt) for attempt in range(1, rounds + 1)]
            if not rounds:
                opened = int(np.searchsorted(farthest, position, side="right"))
                found.append(Fate(LATE, *frame, 1, time_ns - times[opened], index - opened))
        highest = max(highest, position + length)
        earlier.append(time_ns)
    return found + list(_never_came(stream, asked))


def _never_came(stream: Stream, asked: _Asked) -> Iterator[Fate]:
    """Holes that nothing filled: of one transmission, or of as many as were asked for."""
    starts = stream.passages["position"]
    seen = merged(zip(starts.tolist(), (starts + stream.passages["length"]).tolist(), strict=True))
    for (_, begin), (end, _) in pairwise(seen):
        for attempt in range(1, max(1, asked.rounds(begin, 0, END_OF_TIME_NS)) + 1):
            yield Fate(DROP, "DATA", begin, end - begin, attempt)


class _Asked:
    """What was asked for again, and when."""

    def __init__(self, stream: Stream) -> None:
        naks = stream.feedback[stream.feedback["frame_type"] == NAK]
        self._naks = naks[np.argsort(naks["time_ns"], kind="stable")]
        self._repair_ns = self._fastest_ns = 0
        self._repair_ns, self._fastest_ns = self._repair_times_ns(stream)

    def rounds(self, position: int, after_ns: int, until_ns: int) -> int:
        """How often a position was asked for between two times.

        NAKs that follow each other faster than a repair takes are of one round, and one that was
        sent when the repair was all but there is not what it answers.
        """
        count, last_ns = 0, 0
        for time_ns in self._times(position, after_ns, until_ns):
            if count and until_ns - time_ns < self._fastest_ns:
                break
            if not count or time_ns - last_ns >= self._repair_ns:
                count, last_ns = count + 1, time_ns
        return count

    def _times(self, position: int, after_ns: int, until_ns: int) -> list[int]:
        times = self._naks["time_ns"]
        # What is asked for and sent at one time was asked for first.
        first, end = np.searchsorted(times, (after_ns, until_ns), side="right")
        naks = self._naks[first:end]
        starts = naks["position"]
        covers = (starts <= position) & (position < starts + naks["length"])
        found: list[int] = naks["time_ns"][covers].tolist()
        return found

    def _repair_times_ns(self, stream: Stream) -> tuple[int, int]:
        """From the first NAK to what answers it: mostly, and at the least."""
        waits = []
        passed_ns: dict[int, int] = {}
        highest = 0
        for time_ns, position, length, *_ in stream.passages.tolist():
            if position in passed_ns or position < highest:
                asked = self._times(position, passed_ns.get(position, 0), time_ns)
                waits += [time_ns - each for each in asked[:1]]
            passed_ns[position] = time_ns
            highest = max(highest, position + length)
        return (int(np.median(waits)), min(waits)) if waits else (0, 0)
