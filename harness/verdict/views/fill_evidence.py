"""When a receiver that fills gaps on evidence may fill a gap at the earliest.

    arrived    | 0 | 2 | 3 | 4 | 1 ...       1 was overtaken by three datagrams
                     ^ shows the gap, and is the first later datagram
    filled after four later datagrams: 1 arrived in time, so a PAD at its position is an error

Other drivers ignore the channel parameters, and fill a gap at once. A later datagram is one that
ends beyond all earlier ones, or a heartbeat with such a position. Frames that the receiver may have
rejected count as evidence, but none of them must be delivered.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.dissect.driver_files.expected_log import ExpectedLog
from windtunnel.harness.dissect.frames.observed_flows import END_OF_TIME_NS
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel, parse_duration_ns
from windtunnel.harness.scenario.schema.units import format_duration
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.acceptance import certain_heartbeats, certainly_accepted
from windtunnel.harness.verdict.views.losses import frame_index

DATAGRAMS_SETTING = "WINDTUNNEL_GAP_FILL_DATAGRAMS"
DELAY_SETTING = "WINDTUNNEL_GAP_FILL_DELAY"
"""The driver settings that a channel without the parameters has."""
DEFAULT_DELAY_NS = 100_000_000
"""Delay if only a number of datagrams is set. Source: docs/loss-recovery.md."""
SLACK_NS = 5_000_000
"""Tolerance for a frame that arrived just before the delay was over: a scheduler time slice."""
TURN_NS = 100_000
"""Datagrams that arrive so far apart are not read in one turn of a simulated receiver."""
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class FillRule:
    """When a receiver fills a gap: after a number of later datagrams, or after a delay."""

    datagrams: int
    "Number of later datagrams, or 0 if only the delay counts."
    delay_ns: int

    @property
    def text(self) -> str:
        """Describe when a gap may be filled."""
        delay = f"{format_duration(self.delay_ns)} after its gap appeared"
        return f"{self.datagrams} later datagrams, or {delay}" if self.datagrams else delay


def fill_rule(evidence: Evidence, traffic: TrafficCase) -> FillRule | None:
    """Return when a stream's receiver fills gaps, or None if it fills them at once."""
    subject = evidence.subject(traffic.to_host)
    channel = parse_channel(traffic.receive)
    # Datagrams of several sockets have no certain order.
    if traffic.reliable or channel.control_mode == "manual":
        return None
    if subject is not None and subject.is_aerons:
        return None
    settings = {} if subject is None else subject.settings
    datagrams, delay_ns = channel.gap_fill_datagrams, channel.gap_fill_delay_ns
    if datagrams is None:
        datagrams = int(settings.get(DATAGRAMS_SETTING, "0"))
    if delay_ns is None:
        delay_ns = parse_duration_ns(DELAY_SETTING, settings.get(DELAY_SETTING, "0"))
    if not datagrams and not delay_ns:
        return None
    return FillRule(datagrams, delay_ns or DEFAULT_DELAY_NS)


def arrived_in_time(wire: Wire, log: ExpectedLog, start: int, rule: FillRule) -> NDArray[np.bool_]:
    """Return a mask of the expected frames that arrived before a gap at their position could be
    filled.
    """
    index, known = frame_index(log, wire.arrived.starts)
    usable = np.flatnonzero(known & certainly_accepted(wire, start))
    in_time = np.zeros(len(log.frames), dtype=np.bool_)
    # A forged frame may be evidence, too, and is not among those that arrived.
    if len(usable) == 0 or len(wire.forged.starts):
        return in_time
    order, times_ns, tops = _later_datagrams(wire, start)
    starts = wire.arrived.starts[usable]
    shown = np.searchsorted(tops, starts, side="right")
    enough = np.full(len(usable), NEVER)
    if rule.datagrams:
        enough = np.append(order, NEVER)[np.minimum(shown + rule.datagrams - 1, len(order))]
    shown_ns = np.append(times_ns, END_OF_TIME_NS)[shown]
    arrived_ns = wire.arrived.frames["time_ns"][usable].astype(np.int64)
    # The last datagram of the evidence may itself contain the frame.
    is_before = _places(wire)[usable] <= enough
    is_before &= arrived_ns - shown_ns < rule.delay_ns - SLACK_NS
    in_time[index[usable[is_before]]] = True
    return in_time


def due_ns(wire: Wire, start: int, rule: FillRule, begins: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the time at which the evidence for each filled gap was certainly complete, or
    END_OF_TIME_NS. `begins` are the positions of the gaps.

    Of datagrams that a receiver may have read in one turn, only the first one counts.
    """
    times_ns, ends = accepted_ends(wire, start)
    is_later = ends > np.maximum.accumulate(np.append(start, ends))[:-1]
    times_ns, ends = times_ns[is_later], ends[is_later]
    last_ns, kept = -TURN_NS, np.zeros(len(times_ns), dtype=np.bool_)
    for index, time_ns in enumerate(times_ns.tolist()):
        if time_ns - last_ns >= TURN_NS:
            last_ns, kept[index] = time_ns, True
    times_ns = np.append(times_ns[kept], END_OF_TIME_NS)
    shown = np.searchsorted(ends[kept], begins, side="right")
    found = np.minimum(times_ns[shown], END_OF_TIME_NS - rule.delay_ns) + rule.delay_ns
    if rule.datagrams:
        enough = np.minimum(shown + rule.datagrams - 1, len(times_ns) - 1)
        found = np.minimum(found, times_ns[enough])
    return np.maximum.accumulate(found)


def accepted_ends(wire: Wire, start: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the times and the ends of the frames and heartbeats that the receiver certainly
    accepted, in chronological order.
    """
    accepted, beats = certainly_accepted(wire, start), certain_heartbeats(wire, start)
    frames_ns = wire.arrived.frames["time_ns"][accepted].astype(np.int64)
    times_ns = np.concatenate([frames_ns, wire.heartbeat_times_ns[beats]])
    ends = np.concatenate([wire.arrived.ends[accepted], wire.heartbeat_positions[beats]])
    order = np.argsort(times_ns, kind="stable")
    return times_ns[order], ends[order]


def _places(wire: Wire) -> NDArray[np.int64]:
    """Return the place of each arrived frame's datagram among datagrams and heartbeats.

    At equal times heartbeats come first, which is in favour of the receiver.
    """
    times_ns = wire.arrived.frames["time_ns"].astype(np.int64)
    heads = np.diff(wire.arrived.frames["datagram"], prepend=-1) != 0
    beats = np.searchsorted(np.sort(wire.heartbeat_times_ns), times_ns, side="right")
    places: NDArray[np.int64] = np.cumsum(heads) + beats
    return places


def _later_datagrams(
    wire: Wire, start: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the places, the times and the ends of the datagrams that ended beyond all earlier
    ones.
    """
    frames = wire.arrived.frames
    heads = np.flatnonzero(np.diff(frames["datagram"], prepend=-1))
    last = np.append(heads[1:], len(frames)) - 1
    beat_ns = np.sort(wire.heartbeat_times_ns)
    head_ns = frames["time_ns"][heads].astype(np.int64)
    # A heartbeat's place is the number of datagrams and heartbeats until then.
    beat_places = np.arange(1, len(beat_ns) + 1) + np.searchsorted(head_ns, beat_ns, side="left")
    places = np.concatenate([_places(wire)[heads], beat_places])
    times_ns = np.concatenate([head_ns, beat_ns])
    by_time = np.argsort(wire.heartbeat_times_ns, kind="stable")
    ends = np.concatenate([wire.arrived.ends[last], wire.heartbeat_positions[by_time]])
    order = np.argsort(places, kind="stable")
    ends = ends[order]
    before = np.maximum.accumulate(np.append(start, ends))[:-1]
    is_later = ends > before
    return places[order][is_later], times_ns[order][is_later], ends[is_later]
