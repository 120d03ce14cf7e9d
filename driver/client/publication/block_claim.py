"""Claims of blocks. A block claim is a part of the log into which the application writes complete
frames, for example by reading them from a file.
"""

from __future__ import annotations

import numpy as np

from windtunnel.driver.logbuffer import block
from windtunnel.driver.logbuffer import publication_result as result


class BlockClaim:
    """Free space at the position of an exclusive publication.

    Write the first eight bytes of the block to `first_word` and all others to `frames`, then call
    `commit` or `abort`. Bytes that were written beyond what is committed must be zeroed before. A
    claim reserves nothing: it is void once something else is written to the publication. The log
    stays mapped while the claim exists, even if the publication is closed.
    """

    def __init__(
        self, state: np.ndarray, frames: np.ndarray, log: np.ndarray, position: int
    ) -> None:
        self._state, self._log = state, log
        self._is_done = False
        self.position = position
        """The stream position of the first frame."""
        self.first_word = np.zeros(8, dtype=np.uint8)
        """The first eight bytes of the block. They are stored in the log when the block is
        committed, so that no subscriber reads an incomplete block.
        """
        self.frames = frames
        """The claimed part of the log. Its first eight bytes must not be written."""

    def commit(self, length: int) -> int:
        """Publish the first `length` bytes, which must be complete frames of the stream at this
        position.

        Returns: the position after them, or ERROR if the claim was already committed or aborted,
        something else was written to the publication, or the length is impossible
        """
        is_done, self._is_done = self._is_done, True
        if is_done or length > self.frames.size:
            return result.ERROR
        return int(block.publish(self._state, self._log, self.position, length, self.first_word))

    def abort(self) -> None:
        """Zero the claimed part of the log. Does nothing if the claim was already committed, or if
        something else was written to the publication.
        """
        is_done, self._is_done = self._is_done, True
        if not is_done and block.is_current(self._state, self.position):
            self.frames[:] = 0
