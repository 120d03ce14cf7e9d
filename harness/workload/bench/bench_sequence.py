"""Numbered messages, and the check that no message is missing, out of order or damaged.

    message   | source << 40 | sequence (int64) | content up to the message's length |

Every message of a stream has the same length and fits in one frame. Several sources can publish on
one stream, each of which numbers its own messages. The content is random, but known to writers and
readers: message n has that of row n of a table, whose rows repeat.
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
_WORD = 8
"""Bytes of an int64."""

OK, WRONG_SEQUENCE, WRONG_LENGTH, BROKEN_FRAME, WRONG_CONTENT = (
    int(fault)
    for fault in (
        Fault.NONE, Fault.SEQUENCE, Fault.LENGTH, Fault.BROKEN_FRAME, Fault.CONTENT
    )
)  # fmt: skip
_HEADER, _PAD = DATA_HEADER_LENGTH, PAD


def content_of(message_length: int) -> NDArray[np.int64]:
    """Make the content of the messages of a length: int64[rows, words], of which the first word is
    the message's number, and the last word may be longer than the message. The number of rows is
    a power of two.
    """
    if message_length < SEQUENCE_LENGTH:
        raise ValueError(
            f"message length: expected at least {SEQUENCE_LENGTH} bytes, found {message_length}"
        )
    rows = min(max(BATCH_BYTES // message_length, 1), BATCH_MESSAGES_MAX)
    shape = 1 << (rows.bit_length() - 1), -(-message_length // _WORD)
    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    return np.random.default_rng(message_length).integers(least, most, shape, np.int64)


@kernel
def has_content(
    words: NDArray[np.int64], at: int, row: NDArray[np.int64], message_length: int
) -> bool:
    """Return whether a message that begins at a word has the content of a row, after its number."""
    last, odd_bytes = row.size - 1, message_length % _WORD
    difference = 0
    for i in range(1, last):
        difference |= words[at + i] ^ row[i]
    if last > 0:
        mask = (1 << (8 * odd_bytes)) - 1 if odd_bytes else -1
        difference |= (words[at + last] ^ row[last]) & mask
    return difference == 0


@kernel
def check_block(
    words: NDArray[np.int64],
    due: NDArray[np.int64],
    message_length: int,
    content: NDArray[np.int64],
) -> Found:
    """Compare each message in a block of whole frames with the next one of its source, byte by
    byte, and update the numbers of the next ones.

    Shapes:  words int64[n], aligned frames as in a log; padding is skipped. due int64[sources];
             content int64[m, k], as `content_of` makes it, or some of its first rows, a power of
             two
    Returns: (OK or a fault, the expected number, the value found instead)
    """
    at, length_bytes, repeats = 0, words.size * _WORD, content.shape[0] - 1
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
            row = content[number & repeats]
            if not has_content(words, (at + _HEADER) >> 3, row, message_length):
                return WRONG_CONTENT, number, 0
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
        content = content_of(message_length)
        self.count = content.shape[0]
        messages = content.view(np.uint8)[:, :message_length].flatten()
        lengths = np.full(self.count, message_length, np.int64)
        rows = messages.reshape(self.count, message_length)
        numbers = rows[:, :SEQUENCE_LENGTH].view(np.int64)[:, 0]
        numbers[:] = (source << SEQUENCE_BITS) + np.arange(self.count)
        self.arrays: BatchArrays = messages, numbers, lengths
