"""A batch of fragments, copied from a log to arrays without a Python call per fragment.

    fragments[0]          fragments[1]
    | at, length, ...     | at, length, ...
    v                     v
    +---------------------+---------------------+------
    | payload 0           | payload 1           | free
    +---------------------+---------------------+------

Payloads are contiguous. The fragments of a long message therefore form one contiguous block, unless
fragments of another session were read between them.
"""

import numpy as np

from windtunnel.driver.base.atomics import copy
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import frame, reader
from windtunnel.driver.wire import data, header
from windtunnel.driver.wire import frame_type as types

COPIED = np.dtype(
    (
        np.record,
        [
            ("at", "i8"),  # offset of the payload in the batch
            ("length", "i8"),  # of the payload
            ("position", "i8"),  # stream position after the fragment
            ("frame_flags", "i8"),  # 0x80 begins a message, 0x40 ends one
            ("session_id", "i8"),
            ("stream_id", "i8"),
            ("reserved_value", "i8"),
        ],
    )
)

STATE = np.dtype((np.record, [("count", "i8"), ("used_bytes", "i8")]))


@kernel
def collect(log, base, term_length, offset, base_position, state, fragments, payload, limit):
    """Copy up to `limit` data frames into the free space of a batch, starting at the log offset
    `offset`.

    Shapes:  log uint8[n], state STATE[1], fragments COPIED[m], payload uint8[k]
    Returns: (number of fragments added, the offset after the last frame that was read)
    """
    batch = state[0]
    first = batch.count
    while batch.count - first < limit and batch.count < fragments.size:
        end = reader.committed_end(log, base, term_length, offset)
        if end < 0:
            break
        at = base + offset
        if frame.frame_type(log, at) != types.PAD:
            length = max(header.frame_length(log, at) - frame.HEADER_LENGTH, 0)
            if batch.used_bytes + length > payload.size:
                break
            copied = fragments[batch.count]
            copied.at = batch.used_bytes
            copied.length = length
            copied.position = base_position + end
            copied.frame_flags = frame.flags(log, at)
            copied.session_id = data.session_id(log, at)
            copied.stream_id = data.stream_id(log, at)
            copied.reserved_value = data.reserved_value(log, at)
            copy(payload, batch.used_bytes, log, at + data.PAYLOAD, length)
            batch.used_bytes += length
            batch.count += 1
        offset = end
    return batch.count - first, offset


class FragmentBatch:
    """A reusable buffer for up to `fragments_max` fragments with `bytes_max` bytes of payload.

    Shapes: `fragments` COPIED[fragments_max], of which `count` are filled; `payload`
    uint8[bytes_max], of which `used_bytes` are filled
    """

    def __init__(self, fragments_max: int = 4096, bytes_max: int = 1 << 20) -> None:
        if fragments_max < 1 or bytes_max < 1:
            raise ValueError(
                f"fragments_max={fragments_max}, bytes_max={bytes_max}: expected at least 1 each"
            )
        self.fragments: np.ndarray = np.zeros(fragments_max, COPIED)
        self.payload: np.ndarray = np.zeros(bytes_max, np.uint8)
        self.state: np.ndarray = np.zeros(1, STATE)

    @property
    def count(self) -> int:
        """The number of fragments in the batch."""
        return int(self.state[0].count)

    @property
    def used_bytes(self) -> int:
        """The number of payload bytes in the batch."""
        return int(self.state[0].used_bytes)

    def clear(self) -> None:
        """Remove all fragments from the batch."""
        self.state[0] = (0, 0)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> np.ndarray:
        """Return the payload of a fragment as a view, uint8[length]."""
        if not 0 <= index < self.count:
            raise IndexError(f"fragment {index}: expected 0 to {self.count - 1}")
        fragment = self.fragments[index]
        return self.payload[fragment.at : fragment.at + fragment.length]

    def check_room(self, mtu_length: int) -> None:
        """Raise ValueError if the batch is too small for a fragment of the maximum length."""
        longest = mtu_length - frame.HEADER_LENGTH
        if self.payload.size < longest:
            raise ValueError(
                f"bytes_max={self.payload.size}: expected at least {longest}, "
                "the length of a full fragment"
            )
