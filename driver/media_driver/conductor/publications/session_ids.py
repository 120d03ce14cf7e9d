"""Assigns session ids to publications. Those that specify none get sequential ids from a random
start.

The sequence skips the reserved range and the ids that a publication of the stream uses.
Source: spec 7.5, Aeron 1.53.
"""

import random
from collections.abc import Container, Iterable

from windtunnel.driver.base.arith import wrap_i32
from windtunnel.driver.channel.uri import InvalidChannelError
from windtunnel.driver.media_driver.conductor.publications.publication_log import LocalPublication
from windtunnel.driver.media_driver.conductor.publications.publication_request import (
    PublicationRequest,
)


class SessionIds:
    """A driver's sequence of session ids."""

    def __init__(self, rng: random.Random, reserved_low: int, reserved_high: int) -> None:
        self._next = int(wrap_i32(rng.getrandbits(32)))
        self._reserved = range(reserved_low, reserved_high + 1)

    def choose(self, request: PublicationRequest, in_stream: Iterable[LocalPublication]) -> int:
        """Return the session id of a new publication: the requested id, or else the next one.

        Raises InvalidChannelError if one of the publications of the stream has the requested id.
        """
        in_use = {item.session_id for item in in_stream}
        requested = request.parameters.session_id
        if requested is None:
            return self.next(in_use)
        if requested in in_use:
            raise InvalidChannelError(
                f"session-id={requested}: a publication of stream {request.stream_id} on "
                f"'{request.channel_text}' already has this session id"
            )
        return requested

    def next(self, in_use: Container[int]) -> int:
        """Return the next session id that is neither reserved nor in use."""
        while True:
            candidate = self._next
            if candidate in self._reserved:
                candidate = int(wrap_i32(self._reserved.stop))
            self._next = int(wrap_i32(candidate + 1))
            if candidate not in in_use:
                return candidate
