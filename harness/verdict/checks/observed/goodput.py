"""The goodput of a session: payload bytes that arrived, by the time from the first frame that was
sent to the last new one that arrived.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import DATA
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH
from windtunnel.harness.verdict.core.wire import Wire

NS_PER_S = 1_000_000_000


def arrival_figures(wire: Wire) -> dict[str, Any]:
    """Return the goodput of a session, and when its last new frame arrived."""
    arrived = wire.arrived
    _, first = np.unique(arrived.starts, return_index=True)
    new = arrived.frames[first]
    if len(new) == 0 or len(wire.sent.frames) == 0:
        return {}
    payload = _payload_bytes(new["frame_length"], new["frame_type"])
    took_ns = int(new["time_ns"].max()) - int(wire.sent.frames["time_ns"].min())
    if took_ns <= 0:
        return {}
    return {"finished_ns": took_ns, "reached_bytes_per_s": payload * NS_PER_S / took_ns}


def _payload_bytes(lengths: NDArray[Any], kinds: NDArray[Any]) -> int:
    data = lengths[kinds == DATA].astype(np.int64)
    return int((data - DATA_HEADER_LENGTH).sum())
