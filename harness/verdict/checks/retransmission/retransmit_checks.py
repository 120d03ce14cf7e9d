"""Check that only data covered by a NAK is retransmitted, at most once for each NAK.

NAKs that arrived at the publisher's host   [-----)   [-----)
retransmits                                  ## ##     ##            three, each covered by a NAK
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.checks.retransmission.recovery import system_value
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, failed, passed, present
from windtunnel.harness.verdict.core.wire import Wire

ONLY_REQUESTED = "retransmits_only_if_asked"


@kernel
def find_unrequested(
    positions: Any, times: Any, nak_starts: Any, nak_ends: Any, nak_times: Any, low: Any, wrong: Any
) -> None:
    """Mark the retransmits that no NAK requested.

    Shapes:  positions, times int64[n], all retransmits, by position and time; nak_* int64[m], by
             start and time; low int64[n], for each retransmit the first NAK that may cover its
             position; wrong bool[n], the result
    Units:   nanoseconds
    """
    sent = 0
    for index in range(len(positions)):
        sent = sent + 1 if index and positions[index] == positions[index - 1] else 1
        requested = 0
        nak = low[index]
        while nak < len(nak_starts) and nak_starts[nak] <= positions[index]:
            if nak_ends[nak] > positions[index] and nak_times[nak] <= times[index]:
                requested += 1
            nak += 1
        wrong[index] = requested < sent


def retransmits_only_if_asked(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """Each retransmit follows a NAK for its frame, with at most one retransmit for each NAK."""
    wire = present(evidence.wire(traffic)).sent_once()
    short_sends = system_value(evidence, traffic.from_host, counter_key.SHORT_SENDS)
    where = (evidence.name_of(evidence.folder.capture(traffic.from_host)),)
    again = np.flatnonzero(wire.retransmitted())
    order = again[np.lexsort((wire.sent.frames["time_ns"][again], wire.sent.starts[again]))]
    frames, starts = wire.sent.frames[order], wire.sent.starts[order]
    wrong = _unrequested(wire, starts, frames["time_ns"].astype(np.int64))
    datagrams = len(np.unique(frames["datagram"][wrong]))
    facts = {"frames": len(order), "unasked": int(wrong.sum()), "short_sends": short_sends}
    # After a short send the driver sends again, though the capture may have seen the datagram.
    if datagrams > short_sends:
        at = int(np.flatnonzero(wrong)[np.argmin(frames["time_ns"][wrong])])
        position = int(starts[at])
        text = (
            f"the frame at position {position} was retransmitted without a NAK for it; "
            f"{int(wrong.sum())} of {len(order)} retransmits were not requested"
        )
        return failed(
            ONLY_REQUESTED, text, traffic.id, evidence=where, position=position, facts=facts
        )
    verb = noun_for(len(order), "frame was", "frames were")
    text = f"{len(order)} {verb} retransmitted, each after a NAK for it"
    return passed(ONLY_REQUESTED, text, traffic.id, evidence=where, facts=facts)


def _unrequested(
    wire: Wire, positions: NDArray[np.int64], times_ns: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return a mask of the retransmits that no NAK requested. The retransmits must be sorted by
    position and time.
    """
    naks = wire.naks(wire.feedback_arrived_from_all)
    starts = wire.nak_positions(naks)
    order = np.lexsort((naks["time_ns"], starts))
    starts = starts[order]
    lengths = naks["nak_length"][order].astype(np.int64)
    longest = int(lengths.max(initial=0))
    low = np.searchsorted(starts, positions - longest, side="right")
    wrong = np.zeros(len(positions), dtype=np.bool_)
    nak_times_ns = naks["time_ns"][order].astype(np.int64)
    find_unrequested(positions, times_ns, starts, starts + lengths, nak_times_ns, low, wrong)
    return wrong
