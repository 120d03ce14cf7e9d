"""Precompiles the analysis kernels into the cache, so tests and workers need not compile.

    python -m windtunnel.reports.analysis.warm_up

The program processes an empty stream and an empty recording, and prints nothing. It needs neither
Arrow nor Spark. The harness precompiles the kernels that read captures.
"""

import sys

import numpy as np

from windtunnel.harness.dissect.archive_files import recording_walk as recording
from windtunnel.reports.analysis.kernels import flow_control_kernel as windows
from windtunnel.reports.analysis.kernels import image_kernel as image
from windtunnel.reports.analysis.kernels import repair_kernel as repair
from windtunnel.reports.analysis.kernels import totals_kernel as totals
from windtunnel.reports.analysis.kernels.frame_outcome_kernel import EVENT_OUTCOME, FLOW
from windtunnel.reports.analysis.kernels.gap_kernel import CONTROL_LENGTH, GAP, PIECE
from windtunnel.reports.analysis.streams import sending_order


def main() -> int:
    """Compile all analysis kernels. Returns the exit code."""
    none = np.zeros(0, dtype=np.int64)
    bytes_of_none = np.zeros(0, dtype=np.uint8)
    outcomes = np.zeros(0, dtype=EVENT_OUTCOME)
    events = (none, bytes_of_none, none.astype(np.int32), none, none)
    senders = np.zeros(1, dtype=sending_order.SENDER)
    truths, flows, numbers = none.astype(np.bool_), none.astype(np.int32), none.astype(np.int32)
    sending_order.put_in_order(truths, flows, numbers, none, none, none, truths, senders)
    repair.follow(
        *events,
        none,
        truths,
        none,
        1 << 16,
        outcomes,
        np.zeros(1, dtype=FLOW),
        np.zeros(1, dtype=GAP),
        np.zeros(1, dtype=PIECE),
        np.zeros(CONTROL_LENGTH, dtype=np.int64),
    )
    stalls = np.zeros(1, dtype=windows.STALL)
    states = np.zeros(1, dtype=windows.WINDOW)
    windows.follow_windows(*events, none, outcomes, 1, 1, states, stalls, 0, none > 0)
    parts, messages = np.zeros(0, dtype=image.PART), np.zeros(0, dtype=image.MESSAGE)
    whole, truth = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.bool_)
    chosen = (numbers, bytes_of_none, outcomes, truth, True, none, none, none)
    image.choose_parts(0, *chosen, whole, whole, whole, none, truth, parts)
    image.assemble(parts, np.zeros(1, dtype=image.IMAGE)[0], messages, 0)
    numbers.flags.writeable = False
    times_ns = np.zeros(0, dtype=np.int64)
    times_ns.flags.writeable = False
    slots, found = np.zeros(1, dtype=np.int32), np.zeros(0, dtype=totals.TOTAL)
    keys = (flows, numbers, numbers, none, none, flows, numbers, numbers, numbers, numbers)
    totals.sum_up(*keys, times_ns, numbers, numbers, numbers, slots, found)
    # Windows are read-only views of the file.
    window = np.frombuffer(b"", dtype=np.uint8)
    segment, frames = np.zeros(1, dtype=recording.SEGMENT), np.zeros(1, dtype=recording.RECORDED)
    recording.walk_segment(window, segment[0], frames)
    return 0


if __name__ == "__main__":
    sys.exit(main())
