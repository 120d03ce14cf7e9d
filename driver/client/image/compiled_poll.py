"""The walk that has a user's compiled handler inside.

    while there is a committed frame:   handler(buffer, offset, length, header, state)

Knows nothing of what the handler does, and trusts it: a compiled function is not checked at run
time. What stops the walk is what stops every other.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from windtunnel.driver.base.handler import is_compiled, kernel_of_handler
from windtunnel.driver.client.image.header import Action
from windtunnel.driver.logbuffer import frame, reader
from windtunnel.driver.wire import data, header
from windtunnel.driver.wire import frame_type as types

COMPILED_HEADER = np.dtype(
    (
        np.record,
        [
            ("position", "i8"),  # of the stream, behind the fragment
            ("frame_flags", "i8"),  # 0x80 begins a message, 0x40 ends one
            ("session_id", "i8"),
            ("stream_id", "i8"),
            ("term_id", "i8"),
            ("term_offset", "i8"),
            ("reserved_value", "i8"),
            # How far the walk came, for the image; it stands even when the handler raises.
            ("next_position", "i8"),
        ],
    )
)

ABORT, BREAK = int(Action.ABORT), int(Action.BREAK)


@kernel_of_handler
def _walk(handler, log, base, term_length, offset, base_position, headers, state, fragment_limit):
    """Call the handler for each data frame from `offset` on.

    Shapes:  log uint8[n], headers COMPILED_HEADER[1]
    Returns: how many fragments were taken; `next_position` tells how far
    """
    told = headers[0]
    count = 0
    while count < fragment_limit:
        end = reader.committed_end(log, base, term_length, offset)
        if end < 0:
            break
        at = base + offset
        if frame.frame_type(log, at) != types.PAD:
            length = max(header.frame_length(log, at) - frame.HEADER_LENGTH, 0)
            told.position = told.next_position = base_position + end
            told.frame_flags = frame.flags(log, at)
            told.session_id = data.session_id(log, at)
            told.stream_id = data.stream_id(log, at)
            told.term_id = data.term_id(log, at)
            told.term_offset = offset
            told.reserved_value = data.reserved_value(log, at)
            action = handler(log, at + data.PAYLOAD, length, told, state)
            if action == ABORT:
                told.next_position = base_position + offset
                break
            count += 1
            if action == BREAK:
                break
        told.next_position = base_position + end
        offset = end
    return count


def make_header(position: int) -> np.ndarray:
    """A header for one poll that begins at `position`."""
    made = np.zeros(1, COMPILED_HEADER)
    made[0].next_position = position
    return made


def walk_for(handler: Callable[..., Any]) -> Callable[..., Any]:
    """The walk for a handler. Raises TypeError where numba has not compiled the handler."""
    if not is_compiled(handler):
        raise TypeError(f"expected a function compiled by numba.njit, found {handler!r}")
    return _walk
