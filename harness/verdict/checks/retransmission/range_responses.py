"""The responses of a sender that retransmits many ranges at once.

    NAKs     [-------- 100 datagrams --------)      [----------)
    sent     # # ... # (64)  new data  # ... # (36)        under way
                               the same response           not sent again

Such a sender retransmits at most DATAGRAMS_PER_TURN datagrams in one duty cycle, then sends new
data, and continues in the next duty cycle. It does not send again what it sent within the linger
time. A NAK may request several ranges that remain between those under way, and each is counted. The
mode is Windtunnel's: other drivers ignore its channel parameter, and are judged by
Aeron's rules.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.retransmission.all_gaps import has_mode
from windtunnel.harness.verdict.checks.retransmission.linger_times import (
    LINGER_NS_MAX,
    LingerTimes,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.pauses import Pauses
from windtunnel.harness.verdict.views.series import known_at

SETTING = "WINDTUNNEL_RETRANSMIT_RANGES"
"""The driver setting that a channel without the parameter has."""
DATAGRAMS_PER_TURN = 64
"""Number of datagrams that end a duty cycle's retransmits. Source: docs/loss-recovery-sender.md."""
ANSWER_OF_RANGES_NS = 5_000_000
"""Time in which a NAK is answered in a simulation: that of many duty cycles."""


@dataclass(frozen=True)
class Retransmits:
    """The responses to NAKs, in chronological order."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    times_ns: NDArray[np.int64]
    sent: NDArray[np.int64]
    "The highest position that had been sent before each response."
    runs: NDArray[np.int64]
    "For each response, the number of its series of retransmits without new data in between."
    places: NDArray[np.int64]
    "For each response, the number of datagrams in its series up to its end."


def has_ranges(evidence: Evidence, traffic: TrafficCase) -> bool:
    """Return whether a stream's sender retransmits many ranges at once."""
    asked = parse_channel(traffic.channel).retransmit_ranges
    return has_mode(evidence, traffic.from_host, asked, SETTING)


def joined(found: Retransmits) -> Retransmits:
    """Join each response that the end of a duty cycle divided with its continuation."""
    kept: list[int] = []
    ends, places = found.ends.copy(), found.places.copy()
    divided: dict[int, int] = {}
    for index, (start, end) in enumerate(zip(found.starts.tolist(), ends.tolist(), strict=True)):
        first = divided.pop(start, None)
        if first is None:
            kept.append(index)
            first = index
        ends[first] = end
        if places[index] >= DATAGRAMS_PER_TURN:
            divided[end] = first
    rows = np.array(kept, dtype=np.int64)
    chosen = {name: getattr(found, name)[rows] for name in ("starts", "times_ns", "sent")}
    return replace(
        found, **chosen, ends=ends[rows], runs=found.runs[rows], places=found.places[rows]
    )


def covered_ends(found: Retransmits) -> NDArray[np.int64]:
    """Return for each response the end of its data, including what follows it directly and was sent
    in the same series, or earlier and within the linger time.
    """
    ends = found.ends.copy()
    for index, time_ns in enumerate(found.times_ns.tolist()):
        same = found.runs == found.runs[index]
        under_way = (found.times_ns <= time_ns) & (found.times_ns >= time_ns - LINGER_NS_MAX)
        near = np.flatnonzero(same | under_way)
        while True:
            follows = (found.starts[near] <= ends[index]) & (found.ends[near] > ends[index])
            if not follows.any():
                break
            ends[index] = found.ends[near][follows].max()
    return ends


def unanswered(wire: Wire, linger: LingerTimes, pauses: Pauses) -> int | None:
    """Return the position of the first NAK whose first frame was not retransmitted in time, or
    None. A frame that was retransmitted within the linger time need not be sent again.
    """
    naks = wire.naks(wire.feedback_arrived_from_all)
    begins, times_ns = wire.nak_positions(naks), naks["time_ns"].astype(np.int64)
    order = np.lexsort((wire.sent.frames["time_ns"], wire.sent.starts))
    starts = wire.sent.starts[order]
    sent_ns = wire.sent.frames["time_ns"][order].astype(np.int64)
    last_ns = int(sent_ns.max(initial=0))
    tops = np.maximum.accumulate(wire.sent.ends)
    frames_ns = wire.sent.frames["time_ns"].astype(np.int64)
    by_ns = pauses.due_ns(times_ns, ANSWER_OF_RANGES_NS)
    top = known_at(frames_ns, tops, by_ns, 0)
    is_recent = begins >= top - wire.facts.term_length // 2
    columns = (begins, times_ns, by_ns)
    for begin, time_ns, due_ns in zip(*(each[is_recent].tolist() for each in columns), strict=True):
        low, high = np.searchsorted(starts, [begin, begin + 1])
        own_ns = sent_ns[low:high]
        if len(own_ns) == 0 or own_ns[0] > time_ns or due_ns > last_ns:
            continue
        again_ns = own_ns[1:]
        near = again_ns >= time_ns - linger.at_ns(time_ns)
        near &= again_ns <= due_ns
        if not near.any():
            return int(begin)
    return None


def resent_too_soon(wire: Wire, least_ns: int) -> tuple[int, int] | None:
    """Return (position, time since the last one) of the first frame that was retransmitted twice in
    less than `least_ns`, or None.
    """
    order = np.lexsort((wire.sent.frames["time_ns"], wire.sent.starts))
    starts = wire.sent.starts[order]
    times_ns = wire.sent.frames["time_ns"][order].astype(np.int64)
    # The first transmission of a frame is not a retransmit.
    both = (starts[2:] == starts[1:-1]) & (starts[1:-1] == starts[:-2])
    since_ns = np.diff(times_ns)[1:]
    soon = np.flatnonzero(both & (since_ns < least_ns))
    if len(soon) == 0:
        return None
    first = soon[np.argmin(times_ns[2:][soon])]
    return int(starts[2:][first]), int(since_ns[first])


def most_ranges(wire: Wire, found: Retransmits) -> int:
    """Return the maximum number of ranges in the responses.

    Ranges are between the limits of NAKs, or end at the data sent until then. So adjacent ranges of
    one response meet at a frame where a NAK begins or ends, or beyond which nothing had been sent
    when a NAK came.
    """
    if len(found.starts) == 0:
        return 0
    naks = wire.naks(wire.feedback_arrived_from_all)
    starts = wire.nak_positions(naks)
    ends = starts + naks["nak_length"]
    order = np.argsort(wire.sent.frames["time_ns"], kind="stable")
    tops = np.append(0, np.maximum.accumulate(wire.sent.ends[order]))
    until = np.searchsorted(wire.sent.frames["time_ns"][order], naks["time_ns"], side="left")
    edges = np.unique(wire.sent.ends)
    # Frames are never sent partially.
    limits = edges[np.searchsorted(edges, np.append(starts, ends), side="right") - 1]
    is_open = np.zeros(len(edges) + 1, dtype=np.int64)
    np.add.at(is_open, np.searchsorted(edges, np.maximum(starts, tops[until]), side="left"), 1)
    np.add.at(is_open, np.searchsorted(edges, np.maximum(ends, tops[until]), side="left"), -1)
    meets = edges[np.isin(edges, limits) | (np.cumsum(is_open)[:-1] > 0)]
    inner = np.searchsorted(meets, found.ends, side="left") - np.searchsorted(
        meets, found.starts, side="right"
    )
    return len(found.starts) + int(np.maximum(inner, 0).sum())
