"""Numbered messages, and the check that no message is missing or out of order.

    message   | sequence (int64) | padding up to the message's length |

Every message of a stream has the same length and fits in one frame. Both ends process whole
batches, so a load generator is never the bottleneck.
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.driver.kernels.jit import allocating_kernel
from windtunnel.harness.artifact.middlebox.frame_class import PAD
from windtunnel.harness.artifact.run.bench_board import Fault
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH, aligned

SEQUENCE_LENGTH = 8
BATCH_BYTES = 1 << 16
BATCH_MESSAGES_MAX = 2048

OK, WRONG_SEQUENCE, WRONG_LENGTH, BROKEN_FRAME = (
    int(fault) for fault in (Fault.NONE, Fault.SEQUENCE, Fault.LENGTH, Fault.BROKEN_FRAME)
)
_HEADER, _PAD = DATA_HEADER_LENGTH, PAD


@allocating_kernel
def check_block(
    words: NDArray[np.int64], expected: int, message_length: int
) -> tuple[int, int, int]:
    """Compare the number of each message in a block of whole frames with the expected number.

    Shapes:  words int64[n], aligned frames as in a log; padding is skipped
    Returns: (the next expected number, OK or a fault, the value found instead)
    """
    at, length_bytes = 0, words.size * 8
    while at < length_bytes:
        first = words[at >> 3]
        frame_length, frame_type = first & 0xFFFFFFFF, (first >> 48) & 0xFFFF
        if frame_length < _HEADER or frame_length > 0x7FFFFFFF:
            return expected, BROKEN_FRAME, frame_length
        if frame_type != _PAD:
            if frame_length - _HEADER != message_length or at + frame_length > length_bytes:
                return expected, WRONG_LENGTH, frame_length - _HEADER
            found = words[(at + _HEADER) >> 3]
            if found != expected:
                return expected, WRONG_SEQUENCE, found
            expected += 1
        at += aligned(frame_length)
    return expected, OK, 0


class Batch:
    """A batch of adjacent messages. The numbers continue from batch to batch."""

    def __init__(self, message_length: int) -> None:
        if message_length < SEQUENCE_LENGTH:
            raise ValueError(
                f"message length: expected at least {SEQUENCE_LENGTH} bytes, found {message_length}"
            )
        self.message_length = message_length
        self.count = min(max(BATCH_BYTES // message_length, 1), BATCH_MESSAGES_MAX)
        self.messages = np.zeros(self.count * message_length, np.uint8)
        self.lengths = np.full(self.count, message_length, np.int64)
        rows = self.messages.reshape(self.count, message_length)
        self._numbers = rows[:, :SEQUENCE_LENGTH].view(np.int64)[:, 0]
        self._numbers[:] = np.arange(self.count)

    def rest(self, first: int) -> NDArray[np.uint8]:
        """Return the messages of this batch from index `first` on."""
        return self.messages[first * self.message_length :]

    def renumber(self) -> None:
        """Renumber the messages to continue the previous batch."""
        self._numbers += self.count
