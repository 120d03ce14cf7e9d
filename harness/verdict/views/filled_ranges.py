"""The ranges of an unreliable stream that its receiver filled with padding, and the reason.

    read       | DATA |  PAD  |  PAD  | DATA | PAD | DATA       two ranges
    arrived      0                       3           5
    discarded                 2 late                            range 1: one frame lost, one late

A late frame arrived after its gap had been filled, so the receiver discarded it. A rejected frame
arrived in time, but its datagram ended too far beyond the last acknowledged position.
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.run.observed import FilledRange
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.views.acceptance import rejected_positions
from windtunnel.harness.verdict.views.coverage import filled_gaps
from windtunnel.harness.verdict.views.sessions import is_read_from_one_image


def filled_ranges(evidence: Evidence, flow: TrafficCase) -> list[FilledRange]:
    """Return the filled ranges of a flow in order, or none if its records are missing. Adjacent
    filled gaps are one range.
    """
    if flow.reliable:
        return []
    planned, frames = evidence.planned(flow), evidence.frames_seen(flow)
    if isinstance(planned, Missing) or isinstance(frames, Missing):
        return []
    starts, lengths, times_ns = filled_gaps(frames, planned)
    if len(starts) == 0:
        return []
    begins = np.concatenate([[True], starts[1:] != (starts + lengths)[:-1]])
    firsts = np.flatnonzero(begins)
    ends = np.append((starts + lengths)[firsts[1:] - 1], starts[-1] + lengths[-1])
    wire = evidence.wire(flow)
    positions = planned.log.frames["position"].astype(np.int64)
    arrived: NDArray[np.int64] | None = None
    rejected = np.zeros(0, dtype=np.int64)
    # A wire covers one session.
    if not isinstance(wire, Missing) and is_read_from_one_image(evidence, flow):
        arrived = np.concatenate([[0], np.cumsum(np.isin(positions, wire.arrived.starts))])
        rejected = rejected_positions(wire, evidence.join_position(flow))
    ranges = []
    for first, end in zip(firsts.tolist(), ends.tolist(), strict=True):
        start = int(starts[first])
        lost: int | None = None
        late: int | None = None
        low, high = np.searchsorted(rejected, [start, end]).tolist()
        refused = high - low
        if arrived is not None:
            low, high = np.searchsorted(positions, [start, end]).tolist()
            discarded = int(arrived[high] - arrived[low])
            lost = high - low - discarded
            late = discarded - refused
        read_ns = int(times_ns[first])
        ranges.append(FilledRange(start, end - start, read_ns, lost, late, refused))
    return ranges
