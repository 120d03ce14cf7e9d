"""Writing to a stream as its only writer: cheaper, and more can be done.

The place of the next message is this object's own, so one thread at a time may write.
"""

from __future__ import annotations

from windtunnel.driver.base.atomics import get_i64_acquire
from windtunnel.driver.client.publication.message import Message, as_bytes
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import appender
from windtunnel.driver.logbuffer import publication_result as result


@kernel
def _append_padding(state, log, values, limit_at, length):
    return appender.append_padding(state, log, get_i64_acquire(values, limit_at), length)


@kernel
def _offer_block(state, log, values, limit_at, source, source_at, length):
    limit = get_i64_acquire(values, limit_at)
    return appender.offer_block(state, log, limit, source, source_at, length)


class ExclusivePublication(Publication):
    """One end of a stream, for writing, that belongs to one thread."""

    _is_revoked = False

    def append_padding(self, length: int) -> int:
        """Write one padding frame over `length` bytes of payload; readers pass over it.

        Returns: the new position, or a code; ERROR for more than `max_message_length`
        """
        log = self._log
        if self.is_closed:
            return result.CLOSED
        return int(_append_padding(self._appender, log, self._values, self._limit_at, length))

    def offer_block(self, frames: Message, offset: int = 0, length: int | None = None) -> int:
        """Write whole frames that were made for this very place, by a recording for example.

        Their session, stream, term id and term offset are those where this publication stands.
        Shapes:  `length` bytes of `frames` from `offset`, a multiple of 32; to its end where None
        Returns: the new position, or a code; ERROR where the bytes do not belong here
        """
        log = self._log
        if self.is_closed:
            return result.CLOSED
        source = as_bytes(frames)
        if length is None:
            length = source.size - offset
        return int(
            _offer_block(
                self._appender, log, self._values, self._limit_at, source, offset, length
            )
        )  # fmt: skip

    def revoke_on_close(self) -> None:
        """From now on, closing takes the stream back."""
        self._is_revoked = True

    def revoke(self) -> None:
        """Close, and take the stream back: its images end at once, read or not."""
        self._is_revoked = True
        self.close()

    def close(self) -> None:
        """Stop writing, see `Publication.close`; revokes the stream if that was ordered."""
        if not self.is_closed:
            self._conductor.release_publication(self, revoke=self._is_revoked)
