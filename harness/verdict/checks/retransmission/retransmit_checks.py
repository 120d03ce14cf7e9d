"""Retransmits: only what a NAK has asked for, and not oftener than it was asked for.

NAKs that reached the publisher's host      [-----)   [-----)
sent again                                   ## ##     ##            three, each asked for
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.driver.kernels.jit import allocating_kernel
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.checks.retransmission.recovery import system_value
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, Missing, could_not_look, failed, passed
from windtunnel.harness.verdict.core.wire import Wire

ONLY_ASKED = "retransmits_only_if_asked"


@allocating_kernel
def unasked(
    positions: Any, times: Any, nak_starts: Any, nak_ends: Any, nak_times: Any, low: Any, wrong: Any
) -> None:
    """Which sendings of a frame nobody had asked for.

    Shapes:  positions, times int64[n], every sending but the first of each frame, by position and
             time; nak_* int64[m], by start and time; low int64[n], for each sending the first NAK
             that may reach its position; wrong bool[n], the result
    Units:   nanoseconds
    """
    sent = 0
    for index in range(len(positions)):
        sent = sent + 1 if index and positions[index] == positions[index - 1] else 1
        asked = 0
        nak = low[index]
        while nak < len(nak_starts) and nak_starts[nak] <= positions[index]:
            if nak_ends[nak] > positions[index] and nak_times[nak] <= times[index]:
                asked += 1
            nak += 1
        wrong[index] = asked < sent


def retransmits_only_if_asked(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """Each frame was sent again only when a NAK for it had come, and once for each NAK at most."""
    wire = evidence.wire(traffic)
    if isinstance(wire, Missing):
        return could_not_look(ONLY_ASKED, wire, traffic.id)
    short_sends = system_value(evidence, traffic.from_host, counter_key.SHORT_SENDS)
    if isinstance(short_sends, Missing):
        return could_not_look(ONLY_ASKED, short_sends, traffic.id)
    where = (evidence.name_of(evidence.folder.capture(traffic.from_host)),)
    again = np.flatnonzero(wire.resent())
    order = again[np.lexsort((wire.sent.frames["time_ns"][again], wire.sent.starts[again]))]
    frames, starts = wire.sent.frames[order], wire.sent.starts[order]
    wrong = _unasked(wire, starts, frames["time_ns"].astype(np.int64))
    datagrams = len(np.unique(frames["datagram"][wrong]))
    facts = {"frames": len(order), "unasked": int(wrong.sum()), "short_sends": short_sends}
    # What the system refused to send the driver sends anew, though the capture may have seen it.
    if datagrams > short_sends:
        at = int(np.flatnonzero(wrong)[np.argmin(frames["time_ns"][wrong])])
        position = int(starts[at])
        text = (
            f"the frame at position {position} was sent again though no NAK for it was left; "
            f"{int(wrong.sum())} of {len(order)} frames sent again were not asked for"
        )
        return failed(ONLY_ASKED, text, traffic.id, evidence=where, position=position, facts=facts)
    text = f"{len(order)} frames were sent again, each after a NAK for it"
    return passed(ONLY_ASKED, text, traffic.id, evidence=where, facts=facts)


def _unasked(
    wire: Wire, positions: NDArray[np.int64], times_ns: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """By sending, in order of position and time, whether nobody had asked for it."""
    naks = wire.naks(wire.answered_by_all)
    starts = wire.nak_positions(naks)
    order = np.lexsort((naks["time_ns"], starts))
    starts = starts[order]
    lengths = naks["nak_length"][order].astype(np.int64)
    longest = int(lengths.max(initial=0))
    low = np.searchsorted(starts, positions - longest, side="right")
    wrong = np.zeros(len(positions), dtype=np.bool_)
    nak_times_ns = naks["time_ns"][order].astype(np.int64)
    unasked(positions, times_ns, starts, starts + lengths, nak_times_ns, low, wrong)
    return wrong
