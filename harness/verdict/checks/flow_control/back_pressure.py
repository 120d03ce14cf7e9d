"""Check of the counter of back pressure events of a stream (snd-bpe).

    sent        ####|                    ####
    snd-lmt         |- - (too little)    |- - - - - - -      one event between the two sendings
                         ^ SM arrives -> ^

An event is counted when a sender finds, after it has sent data, that the window is shut, or too
small for the next frame, and once until it sends again. A sender that is slow may find the window
opened already, and one that is fast counts the event although the window opens at once.
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import PAD
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.flow import positions
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.retransmission.recovery import stream_total
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, failed, passed, present
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.virtual import is_virtual
from windtunnel.harness.verdict.core.wire import Wire, status_messages
from windtunnel.harness.verdict.views.series import Series, known_at, stream_series

COUNTED = "back_pressure_counted"

TURN_NS = 50_000_000
"""Time in which a sender certainly looks at its window again."""
VIRTUAL_TURN_NS = 50_000
"""The same in a simulation: more than the turns between two looks at its control sockets."""


def back_pressure_counted(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """snd-bpe counts each time that a sender was stopped by the window of its receiver."""
    wire, planned, case = present(evidence.wire(traffic), evidence.planned(traffic), evidence.case)
    is_single = len(traffic.publishers) == len(traffic.subscribers) == 1 and not case.events
    if parse_channel(traffic.channel).is_group or not is_single:
        text = "not applicable: several receivers or several publications"
        return Finding(COUNTED, Outcome.INCONCLUSIVE, text, traffic.id)
    value = stream_total(evidence, traffic.from_host, counter_key.SENDER_BACK_PRESSURE_EVENTS, wire)
    produced = stream_series(evidence, traffic.from_host, counter_key.PUBLISHER_POSITION, wire)
    where = (
        evidence.name_of(evidence.folder.host(traffic.from_host).counters),
        evidence.name_of(evidence.folder.capture(traffic.from_host)),
    )
    turn_ns = VIRTUAL_TURN_NS if is_virtual(case) else TURN_NS
    least, most = _bounds(wire, planned.log.start_position, produced, turn_ns)
    facts = {"counted": value, "least": least, "most": most}
    text = f"snd-bpe is {value}, expected {least} to {most} according to the capture"
    if not least <= value <= most:
        return failed(COUNTED, text, traffic.id, evidence=where, facts=facts)
    return passed(COUNTED, text, traffic.id, evidence=where, facts=facts)


def _bounds(wire: Wire, start: int, produced: Series, turn_ns: int) -> tuple[int, int]:
    """Return how many events a sender certainly counts, and how many at most."""
    fresh = wire.sent.where(~wire.retransmitted())
    if len(fresh.starts) == 0:
        return 0, 0
    frames_ns = fresh.frames["time_ns"].astype(np.int64)
    last = np.append(np.diff(fresh.frames["datagram"]) != 0, True)
    sent_ns, ends = frames_ns[last], fresh.ends[last]
    next_ns = np.append(sent_ns[1:], np.iinfo(np.int64).max)
    messages = status_messages(wire.feedback_arrived)
    arrived_ns = messages["time_ns"].astype(np.int64)
    limits = positions(messages, wire.facts.initial_term_id, wire.facts.term_length)
    limits = np.maximum.accumulate(limits + messages["window_bytes"].astype(np.int64))
    needed = ends + _next_lengths(wire, ends)
    before = known_at(arrived_ns, limits, sent_ns - turn_ns, start)
    most = int(((ends >= before) | (needed > before)).sum())
    after = known_at(arrived_ns, limits, sent_ns + turn_ns, start)
    idle = next_ns - sent_ns > turn_ns
    shut = idle & (ends >= after)
    # The next frame was there a turn before the status message that lets it be sent.
    opened_ns = np.append(arrived_ns, np.iinfo(np.int64).max)[np.searchsorted(limits, needed)]
    known = known_at(
        produced.read_before_ns, produced.values, np.minimum(opened_ns, next_ns) - turn_ns, start
    )
    waits = idle & (needed > after) & (known >= needed)
    return int((shut | waits).sum()), most


def _next_lengths(wire: Wire, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the window that the frame at each position needs: its length, or 1 if there is none.

    A PAD needs window only for its header.
    """
    starts, first = np.unique(wire.sent.starts, return_index=True)
    lengths = wire.sent.ends[first] - starts
    lengths[wire.sent.frames["frame_type"][first] == PAD] = DATA_HEADER_LENGTH
    at = np.searchsorted(starts, ends)
    known = at < len(starts)
    known[known] = starts[at[known]] == ends[known]
    found = np.ones(len(ends), dtype=np.int64)
    found[known] = lengths[at[known]]
    return found
