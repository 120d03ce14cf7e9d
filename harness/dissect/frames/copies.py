"""Datagrams that a publication sent to one address more than once, although it has one receiver.

    receiver id 7    restarted: id 9
    |--- 1 2 3 ------|--- 4 4 5 5 6 6 --- 5 s --- 7 8       to the same address and port

Aeron's drivers tell the destinations of a dynamic publication apart by receiver id, so a receiver
that was restarted is a second destination until the first one times out.
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import SM
from windtunnel.harness.dissect.frames.frames import Frames

COPIED_WITHIN_NS = 1_000_000
"""A datagram is sent to all destinations in one duty cycle."""
_ADDRESS = ("source_high", "source_low", "source_port")
_CONTENT = (
    *("destination_high", "destination_low", "destination_port"),
    *("session_id", "stream_id", "frame_type", "flags", "term_id", "term_offset"),
    *("frame_length", "datagram_length"),
)


def has_returned(feedback: Frames) -> bool:
    """Return whether status messages of several receiver ids came from one address."""
    messages = feedback[feedback["frame_type"] == SM]
    if len(messages) == 0:
        return False
    addresses = np.stack([messages[each].astype(np.int64) for each in _ADDRESS], axis=1)
    known = np.column_stack([addresses, messages["receiver_id"].astype(np.int64)])
    return len(np.unique(known, axis=0)) > len(np.unique(addresses, axis=0))


def without_copies(frames: Frames) -> Frames:
    """Return the frames without those that were just sent to the same address."""
    keys = [frames[each].astype(np.int64) for each in _CONTENT]
    order = np.lexsort((frames["time_ns"], *keys))
    ordered = np.stack([key[order] for key in keys])
    is_copy = np.zeros(len(frames), dtype=np.bool_)
    again = np.all(np.diff(ordered, axis=1) == 0, axis=0)
    again &= np.diff(frames["time_ns"][order].astype(np.int64)) <= COPIED_WITHIN_NS
    is_copy[order[1:]] = again
    first: NDArray[np.bool_] = ~is_copy
    kept: Frames = frames[first]
    return kept


def of_other_port(frames: Frames) -> NDArray[np.bool_]:
    """Return a mask of the frames that were just sent to another port of the same address, for
    another destination of their publication.
    """
    copies = np.zeros(len(frames), dtype=np.bool_)
    if len(np.unique(frames["destination_port"])) <= 1:
        return copies
    keys = [frames[each].astype(np.int64) for each in _CONTENT if each != "destination_port"]
    times_ns, ports = frames["time_ns"].astype(np.int64), frames["destination_port"]
    order = np.lexsort((times_ns, *keys))
    ordered = np.stack([key[order] for key in keys])
    is_next = np.any(np.diff(ordered, axis=1) != 0, axis=0)
    is_next |= np.diff(times_ns[order]) > COPIED_WITHIN_NS
    turn = np.zeros(len(frames), dtype=np.int64)
    turn[order[1:]] = np.cumsum(is_next)
    # The nth frame of a turn to one port is a copy of the nth frame to another one.
    nth = _numbers(np.lexsort((times_ns, ports, turn)), (turn, ports))
    again: NDArray[np.bool_] = _numbers(np.lexsort((times_ns, nth, turn)), (turn, nth)) > 0
    return again


def _numbers(order: NDArray[np.int64], keys: tuple[NDArray[np.int64], ...]) -> NDArray[np.int64]:
    """Return the number of each row among the rows with the same keys, from 0, in an order in which
    these are next to each other.
    """
    rows = np.arange(len(order))
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = np.any([np.diff(each[order].astype(np.int64)) != 0 for each in keys], axis=0)
    found = np.zeros(len(order), dtype=np.int64)
    found[order] = rows - np.maximum.accumulate(np.where(is_first, rows, 0))
    return found
