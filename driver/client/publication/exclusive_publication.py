"""Exclusive publications. Each is the only writer of its stream, and can also append padding,
append blocks, and revoke the stream.

The tail position is local to the object, so writes are cheaper, but only one thread at a time may
write.
"""

from __future__ import annotations

from operator import index

from windtunnel.driver.base.atomics import get_i64_acquire
from windtunnel.driver.client.publication.block_claim import BlockClaim
from windtunnel.driver.client.publication.message import Message, as_bytes, as_integer
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import appender, block
from windtunnel.driver.logbuffer import publication_result as result


@kernel
def _append_padding(state, log, values, limit_at, length):
    return appender.append_padding(state, log, get_i64_acquire(values, limit_at), length)


@kernel
def _offer_block(state, log, values, limit_at, source, source_at, length):
    limit = get_i64_acquire(values, limit_at)
    return block.offer(state, log, limit, source, source_at, length)


@kernel
def _claim_block(state, log, values, limit_at):
    return block.claim(state, log, get_i64_acquire(values, limit_at), 0)


class ExclusivePublication(Publication):
    """The only publication that writes to its stream. Only one thread at a time may use it."""

    _is_revoked = False

    def append_padding(self, length: int) -> int:
        """Write a padding frame with a payload of `length` bytes. Subscribers skip the frame.

        Returns: the new position, or a code, which is ERROR for more than `max_message_length`
        """
        length = int(index(length))
        if not 0 <= length <= self.max_message_length:
            return result.ERROR
        log = self._log
        if self.is_closed:
            return result.CLOSED
        return int(_append_padding(self._appender, log, self._values, self._limit_at, length))

    def offer_block(self, frames: Message, offset: int = 0, length: int | None = None) -> int:
        """Write complete frames at the current position, for example frames from a recording.

        Their session id, stream id, term id and term offset must be those of the current position.
        Shapes:  `length` bytes of `frames` from `offset`, a multiple of 32, or up to the end if
        None Returns: the new position, or a code, which is ERROR if the frames are for another
        position
        """
        log = self._log
        if self.is_closed:
            return result.CLOSED
        source, offset = as_bytes(frames), as_integer(offset)
        length = source.size - offset if length is None else as_integer(length)
        return int(
            _offer_block(
                self._appender, log, self._values, self._limit_at, source, offset, length
            )
        )  # fmt: skip

    def claim_block(self) -> BlockClaim | int:
        """Claim the rest of the current term, or of the next one if that is full, for complete
        frames, which the caller writes in place.

        The claim is refused beyond the position limit, but its end may be beyond it.
        Returns: the claim, or a negative code
        """
        log = self._log
        if self.is_closed:
            return result.CLOSED
        outcome, at, room = _claim_block(self._appender, log, self._values, self._limit_at)
        if outcome < 0:
            return int(outcome)
        return BlockClaim(self._appender, log[int(at) : int(at + room)], log, int(outcome))

    def revoke_on_close(self) -> None:
        """Make `close` revoke the stream."""
        self._is_revoked = True

    def revoke(self) -> None:
        """Close the publication and revoke the stream. Its images end immediately, even if they
        have unread data.
        """
        self._is_revoked = True
        self.close()

    def close(self) -> None:
        """Close the publication, and revoke the stream if `revoke_on_close` was called."""
        if not self.is_closed:
            self._conductor.release_publication(self, revoke=self._is_revoked)
