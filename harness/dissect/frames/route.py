"""Selects frames by route: from one host to another, or to a multicast group.

A host sends to several receivers by multicast, or to each one separately. In both cases a
receiver's frames are those addressed to it or to the group.
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.dissect.capture.pcap import sent_by, sent_to
from windtunnel.harness.dissect.frames.frames import Frames

_V4_PREFIX = 0xFFFF
_MULTICAST = 0xE


def to_group(frames: Frames) -> NDArray[np.bool_]:
    """Return a mask of the frames that were sent to an IPv4 multicast group."""
    low = frames["destination_low"]
    is_v4 = (frames["destination_high"] == 0) & (low >> 32 == _V4_PREFIX)
    found: NDArray[np.bool_] = is_v4 & (low >> 28 & 0xF == _MULTICAST)
    return found


def between(frames: Frames, sender: str, receiver: str) -> NDArray[np.bool_]:
    """Return a mask of the frames sent from one address to another address or to any multicast
    group.
    """
    found: NDArray[np.bool_] = sent_by(frames, sender)
    return found & (sent_to(frames, receiver) | to_group(frames))


def within(frames: Frames, span_ns: tuple[int, int] | None) -> NDArray[np.bool_]:
    """Return a mask of the frames captured in a span of time, or of all if it is None."""
    if span_ns is None:
        return np.ones(len(frames), dtype=np.bool_)
    times_ns = frames["time_ns"].astype(np.int64)
    found: NDArray[np.bool_] = (times_ns >= span_ns[0]) & (times_ns < span_ns[1])
    return found


def of_port(frames: Frames, port: int | None) -> NDArray[np.bool_]:
    """Return a mask of the frames sent to or from a UDP port, or of all if it is None."""
    if port is None:
        return np.ones(len(frames), dtype=np.bool_)
    found: NDArray[np.bool_] = (frames["destination_port"] == port) | (
        frames["source_port"] == port
    )
    return found
