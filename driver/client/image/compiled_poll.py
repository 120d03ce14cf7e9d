"""A poll loop that calls a handler compiled by numba.

    while there is a committed frame:   handler(buffer, offset, length, header, state)

The handler is trusted, because numba checks no bounds at run time. The loop stops at the same
positions as the other polls.
"""

from collections.abc import Callable
from functools import cache
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
            ("position", "i8"),  # stream position after the fragment
            ("frame_flags", "i8"),  # 0x80 begins a message, 0x40 ends one
            ("session_id", "i8"),
            ("stream_id", "i8"),
            ("term_id", "i8"),
            ("term_offset", "i8"),
            ("reserved_value", "i8"),
            # position after the poll, for the image; valid even if the handler raises
            ("next_position", "i8"),
        ],
    )
)

ABORT, BREAK = int(Action.ABORT), int(Action.BREAK)


def _walk(handler, log, base, term_length, offset, base_position, headers, state, fragment_limit):
    """Call the compiled handler for each committed data frame, starting at the log offset `offset`.

    Shapes:  log uint8[n], headers COMPILED_HEADER[1]
    Returns: the number of consumed fragments; `next_position` is the position after them
    """
    fields = headers[0]
    count = 0
    while count < fragment_limit:
        end = reader.committed_end(log, base, term_length, offset)
        if end < 0:
            break
        at = base + offset
        if frame.frame_type(log, at) != types.PAD:
            length = max(header.frame_length(log, at) - frame.HEADER_LENGTH, 0)
            fields.position = fields.next_position = base_position + end
            fields.frame_flags = frame.flags(log, at)
            fields.session_id = data.session_id(log, at)
            fields.stream_id = data.stream_id(log, at)
            fields.term_id = data.term_id(log, at)
            fields.term_offset = offset
            fields.reserved_value = data.reserved_value(log, at)
            action = handler(log, at + data.PAYLOAD, length, fields, state)
            if action == ABORT:
                fields.next_position = base_position + offset
                break
            count += 1
            if action == BREAK:
                break
        fields.next_position = base_position + end
        offset = end
    return count


@cache
def _compiled_walk() -> Callable[..., Any]:
    # Not at import, because it imports numba, and few clients poll with a compiled handler.
    return kernel_of_handler(_walk)


def make_header(position: int) -> np.ndarray:
    """Create the record in which a poll passes each fragment's header to a compiled handler.
    `position` is where the poll starts.
    """
    headers = np.zeros(1, COMPILED_HEADER)
    headers[0].next_position = position
    return headers


def walk_of(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return the poll loop for a handler that numba compiled. Raises TypeError for any other
    handler.
    """
    if not is_compiled(handler):
        raise TypeError(f"expected a function compiled by numba.njit, found {handler!r}")
    return _compiled_walk()
