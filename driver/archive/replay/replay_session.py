"""Sends the blocks of a recording to a publication that has the same position.

    RecordingReader --block--> ExclusivePublication        up to `end`, limited by `limit()`

A session ends regularly when everything before `end` was sent, including the whole frame that
contains `end`. The publication is then closed and lingers for its subscribers. If the subscribers
leave, a frame is invalid, or the replay is aborted, the publication is revoked.
Source: archive-protocol 3.6, 5.3.
"""

from collections.abc import Callable

from windtunnel.driver.archive.replay.recording_reader import EMPTY, RecordingReader
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.driver.wire.data import ALIGNMENT, HEADER_LENGTH

_RETRY = (result.BACK_PRESSURED, result.ADMIN_ACTION)


class ReplaySession:
    """Sends one recording to a publication. Only one thread may use it."""

    def __init__(
        self,
        reader: RecordingReader,
        publication: ExclusivePublication,
        end: int,
        limit: Callable[[], int],
        is_final: Callable[[], bool] = lambda: False,
    ) -> None:
        """Create a session. `limit` must return the position up to which data can be read.

        Once `is_final` returns True, the limit does not change any more, and the replay ends there.
        """
        assert publication.position == reader.position, (publication.position, reader.position)
        self._reader, self._publication = reader, publication
        self._end, self._limit, self._is_final = end, limit, is_final
        self.failure = ""
        """The reason why the replay ended prematurely. It is empty after a regular end, or if the
        subscribers left.
        """
        self.is_done = False
        self._padding = EMPTY
        """The padding that is being sent."""

    @property
    def position(self) -> int:
        """The position up to which the recording was sent."""
        return self._reader.position

    def do_work(self) -> int:
        """Send one block. Returns the amount of work done."""
        if self.is_done:
            return 0
        # The limit may still change until this is true, so the limit is read after it.
        is_final = self._is_final()
        limit = self._limit()
        if is_final:
            self._end = min(self._end, limit)
        if self._reader.position >= self._end:
            self._finish()
            return 0
        if not self._publication.is_connected:
            self.abort()
            return 0
        if self._reader.position >= limit:
            return 0
        try:
            return self._offer(limit, is_final=is_final)
        except StorageError as error:
            self.abort(str(error))
            return 0

    def _offer(self, limit: int, *, is_final: bool) -> int:
        publication, reader = self._publication, self._reader
        if self._padding.length > 0:
            return self._send_padding()
        claim = publication.claim_block()
        if isinstance(claim, int):
            return self._rejected(claim)
        block = reader.block(claim, self._end, limit, publication.session_id, publication.stream_id)
        if block.is_padding:
            self._padding = block
            return self._send_padding()
        if block.length == 0:
            if is_final:
                self.abort(
                    f"the frame at position {reader.position} ends beyond the end of the data at "
                    f"position {limit}"
                )
            return 0
        position = claim.commit(block.length)
        if position < 0:
            return self._rejected(position)
        reader.advance(block)
        return block.length

    def _send_padding(self) -> int:
        position = self._append_padding(self._padding.length)
        if position < 0:
            return self._rejected(position)
        if position == self._reader.position + self._padding.length:
            self._reader.advance(self._padding)
            self._padding = EMPTY
        return 1

    def _rejected(self, code: int) -> int:
        """Abort the replay if the code of the publication is permanent. Returns 0."""
        if code == result.NOT_CONNECTED:
            self.abort()
        elif code not in _RETRY:
            self.abort(f"the publication rejected position {self._reader.position} with {code}")
        return 0

    def _append_padding(self, length: int) -> int:
        """Append a padding frame that ends where the recording's next frame begins, or earlier if
        the padding is too long for a single frame.

        Recordings may contain padding that is longer than the maximum message length: the rest of a
        term into which the longest message did not fit. Aeron can send it in one frame.
        """
        publication = self._publication
        left = self._reader.position + length - publication.position
        longest = publication.max_message_length // ALIGNMENT * ALIGNMENT
        return publication.append_padding(min(left, longest) - HEADER_LENGTH)

    def _finish(self) -> None:
        self.is_done = True
        self._reader.close()
        self._publication.close()

    def abort(self, reason: str = "") -> None:
        """End the replay immediately and revoke its publication. Repeated calls have no effect."""
        if not self.is_done:
            self.is_done, self.failure = True, reason
            self._reader.close()
            self._publication.revoke()
