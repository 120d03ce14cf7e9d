"""Claims of blocks. A block claim is a part of the log into which the application writes complete
frames, for example by reading them from a file.
"""

from __future__ import annotations

import numpy as np

from windtunnel.driver.logbuffer import block


class BlockClaim:
    """Free space at the position of an exclusive publication.

    Write the first eight bytes of the block to `first_word` and all others to `frames`, then call
    `commit`. Bytes that are written but not committed must be zeroed. A claim reserves nothing: it
    is void once something else is written to the publication. The log stays mapped while the claim
    exists, even if the publication is closed.
    """

    def __init__(
        self, state: np.ndarray, log: np.ndarray, at: int, length: int, position: int
    ) -> None:
        self._state, self._log = state, log
        self.position = position
        """The stream position of the first frame."""
        self.first_word = np.zeros(8, dtype=np.uint8)
        """The first eight bytes of the block. They are stored in the log when the block is
        committed, so that no subscriber reads an incomplete block.
        """
        self.frames: np.ndarray = log[at : at + length]
        """The claimed part of the log. Its first eight bytes must not be written."""

    def commit(self, length: int) -> int:
        """Publish the first `length` bytes, which must be complete frames of the stream at this
        position. Returns the position after them.
        """
        assert 0 < length <= self.frames.size, (length, self.frames.size)
        return int(block.publish(self._state, self._log, length, self.first_word))
