"""Numbered messages, and the check that no message is missing or out of order.

    message   | source << 40 | sequence (int64) | padding up to the message's length |

Every message of a stream has the same length and fits in one frame. Several sources can publish on
one stream, each of which numbers its own messages.
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox.frame_class import PAD
from windtunnel.harness.artifact.run.bench_board import Fault, Found
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH, aligned

SEQUENCE_LENGTH = 8
SEQUENCE_BITS = 40
"""Bits of a message's number; the source of the message is above them."""
BATCH_BYTES = 1 << 16
BATCH_MESSAGES_MAX = 2048

OK, WRONG_SEQUENCE, WRONG_LENGTH, BROKEN_FRAME = (
    int(fault) for fault in (Fault.NONE, Fault.SEQUENCE, Fault.LENGTH, Fault.BROKEN_FRAME)
)
_HEADER, _PAD = DATA_HEADER_LENGTH, PAD


@kernel
def check_block(words: NDArray[np.int64], due: NDArray[np.int64], message_length: int) -> Found:
    """Compare the number of each message in a block of whole frames with the next number of its
    source, and update these numbers.

    Shapes:  words int64[n], aligned frames as in a log; padding is skipped. due int64[sources]
    Returns: (OK or a fault, the expected number, the value found instead)
    """
    at, length_bytes = 0, words.size * 8
    while at < length_bytes:
        first = words[at >> 3]
        frame_length, frame_type = first & 0xFFFFFFFF, (first >> 48) & 0xFFFF
        if frame_length < _HEADER or frame_length > 0x7FFFFFFF:
            return BROKEN_FRAME, 0, frame_length
        if frame_type != _PAD:
            if frame_length - _HEADER != message_length or at + frame_length > length_bytes:
                return WRONG_LENGTH, message_length, frame_length - _HEADER
            found = words[(at + _HEADER) >> 3]
            source = found >> SEQUENCE_BITS
            if source < 0 or source >= due.size:
                return WRONG_SEQUENCE, due[0], found
            number = found - (source << SEQUENCE_BITS)
            if number != due[source]:
                return WRONG_SEQUENCE, due[source], number
            due[source] += 1
        at += aligned(frame_length)
    return OK, 0, 0


BatchArrays = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]
"""The messages of a batch, their numbers and their lengths."""


@kernel
def renumber(numbers: NDArray[np.int64]) -> None:
    """Renumber the messages of a batch to continue the previous batch."""
    for i in range(numbers.size):
        numbers[i] += numbers.size


class Batch:
    """A batch of adjacent messages of a source. The numbers continue from batch to batch."""

    def __init__(self, message_length: int, source: int = 0) -> None:
        if message_length < SEQUENCE_LENGTH:
            raise ValueError(
                f"message length: expected at least {SEQUENCE_LENGTH} bytes, found {message_length}"
            )
        self.count = min(max(BATCH_BYTES // message_length, 1), BATCH_MESSAGES_MAX)
        messages = np.zeros(self.count * message_length, np.uint8)
        lengths = np.full(self.count, message_length, np.int64)
        rows = messages.reshape(self.count, message_length)
        numbers = rows[:, :SEQUENCE_LENGTH].view(np.int64)[:, 0]
        numbers[:] = (source << SEQUENCE_BITS) + np.arange(self.count)
        self.arrays: BatchArrays = messages, numbers, lengths
