"""The kernels of the analysis into the cache, once, so that neither tests nor workers wait for it.

    python -m reports.analysis.warm_up

Follows an empty stream and an empty recording; prints nothing. Needs neither Arrow nor Spark; those
kernels that read captures are the harness's to warm up.
"""

import sys

import numpy as np

from harness.dissect import recording_walk as recording
from reports.analysis import flow_control_kernel as windows
from reports.analysis import image_kernel as image
from reports.analysis import repair_kernel as repair


def main() -> int:
    """Compile everything. Returns the exit code."""
    none = np.zeros(0, dtype=np.int64)
    bytes_of_none = np.zeros(0, dtype=np.uint8)
    told = np.zeros(0, dtype=repair.TOLD)
    events = (none, bytes_of_none, none.astype(np.int32), none, none)
    repair.follow(
        *events,
        1 << 16,
        told,
        np.zeros(1, dtype=repair.FLOW),
        np.zeros(1, dtype=repair.GAP),
        np.zeros(1, dtype=repair.PIECE),
        np.zeros(repair.CONTROLS, dtype=np.int64),
    )
    stalls = np.zeros(1, dtype=windows.STALL)
    states = np.zeros(1, dtype=windows.WINDOW)
    windows.follow_windows(*events, none, told, 1, 1, states, stalls, 0)
    parts, messages = np.zeros(0, dtype=image.PART), np.zeros(0, dtype=image.MESSAGE)
    image.assemble(parts, np.zeros(1, dtype=image.IMAGE)[0], messages, 0)
    # Windows are views of what was read, which nobody may write to.
    window = np.frombuffer(b"", dtype=np.uint8)
    segment, frames = np.zeros(1, dtype=recording.SEGMENT), np.zeros(1, dtype=recording.RECORDED)
    recording.walk_segment(window, segment[0], frames)
    return 0


if __name__ == "__main__":
    sys.exit(main())
