"""Offering a recording's blocks to a publication that stands where they belong.

    RecordingReader --block--> ExclusivePublication        up to `end`, as far as `limit()` says

It ends well when everything before `end` was offered: then the publication is closed and lingers
for its subscribers. When they go, when a frame is not sound, or when it is told to, the publication
is revoked. The frame in which `end` lies is still sent. Source: archive-protocol 3.6, 5.3.
"""

from collections.abc import Callable

from windtunnel.driver.archive.replay.recording_reader import RecordingReader
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.driver.wire.data import ALIGNMENT, HEADER_LENGTH

_LATER = (result.BACK_PRESSURED, result.ADMIN_ACTION)


class ReplaySession:
    """Sends one recording again, in one thread."""

    def __init__(
        self,
        reader: RecordingReader,
        publication: ExclusivePublication,
        end: int,
        limit: Callable[[], int],
        is_final: Callable[[], bool] = lambda: False,
    ) -> None:
        """`limit` tells up to which position there is data to be read.

        Once `is_final` says so, there will never be more, and it ends there.
        """
        assert publication.position == reader.position, (publication.position, reader.position)
        self._reader, self._publication = reader, publication
        self._end, self._limit, self._is_final = end, limit, is_final
        self.failure = ""
        """Why it ended before its end; empty after a good end, or where the subscribers went."""
        self.is_done = False

    @property
    def position(self) -> int:
        """Up to where it was sent."""
        return self._reader.position

    def do_work(self) -> int:
        """Offer one block. Returns how many bytes."""
        if self.is_done:
            return 0
        if self._is_final():
            self._end = min(self._end, self._limit())
        if self._reader.position >= self._end:
            self._finish()
            return 0
        if not self._publication.is_connected:
            self.abort()
            return 0
        if self._publication.available_window <= 0:
            return 0
        try:
            return self._offer()
        except StorageError as error:
            self.abort(str(error))
            return 0

    def _offer(self) -> int:
        publication = self._publication
        block = self._reader.block(
            self._end, self._limit(), publication.session_id, publication.stream_id
        )
        if block.length == 0:
            return 0
        if block.frames is None:
            answer = self._append_padding(block.length)
        else:
            answer = publication.offer_block(block.frames)
        if answer > 0:
            if answer == self._reader.position + block.length:
                self._reader.advance(block)
            return block.length
        if answer == result.NOT_CONNECTED:
            self.abort()
        elif answer not in _LATER:
            self.abort(f"the publication refused position {self._reader.position}: {answer}")
        return 0

    def _append_padding(self, length: int) -> int:
        """Append padding up to the next frame, as several frames where one would be too long.

        Aeron takes padding that is a little longer than the longest message: what is left of a term
        in which that did not fit.
        """
        publication = self._publication
        left = self._reader.position + length - publication.position
        longest = publication.max_message_length // ALIGNMENT * ALIGNMENT
        return publication.append_padding(min(left, longest) - HEADER_LENGTH)

    def _finish(self) -> None:
        self.is_done = True
        self._reader.close()
        self._publication.close()

    def abort(self, why: str = "") -> None:
        """End it now: what subscribers have not read yet is taken back. May be called again."""
        if not self.is_done:
            self.is_done, self.failure = True, why
            self._reader.close()
            self._publication.revoke()
