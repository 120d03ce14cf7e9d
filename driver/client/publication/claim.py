"""Claims. A claim is a frame reserved in the log, whose payload the application writes in place."""

from __future__ import annotations

from types import TracebackType

import numpy as np

from windtunnel.driver.base.atomics import get_i64, put_i64
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import appender, frame, tail
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.driver.wire import data


@kernel
def claim_frame(state, log, values, limit_at, length):
    """Claim a frame for a payload of `length` bytes. Threads of a concurrent publication may claim
    at the same time.

    Shapes:  state APPENDER[1], log uint8[n], values uint8[m] with the limit at byte `limit_at`
    Returns: (the position after the frame or an error code, the frame's offset in the log)
    """
    if length < 0 or length > state[0].max_payload_length:
        return result.ERROR, 0
    frame_length = length + frame.HEADER_LENGTH
    limit = counters.get_acquire(values, limit_at // counters.COUNTER_LENGTH)
    outcome, at, term_id, term_offset = tail.claim(
        state, log, limit, frame.aligned(frame_length), length
    )
    if outcome > 0:
        frame.write_header(log, at, state[0].meta_at, frame_length, term_id, term_offset)
    return outcome, at


class Claim:
    """A claimed frame. Write to its `payload`, then call `commit` or `abort`.

    As a context manager, the claim commits, or aborts if the block raises. Until then, subscribers
    cannot read past the frame. The driver unblocks a forgotten claim after some seconds. The log
    stays mapped while the claim exists, even if the publication is closed.
    """

    def __init__(self, log: np.ndarray, claim_at: int, frame_length: int, position: int) -> None:
        self._log = log
        self._claim_at = claim_at
        self._is_done = False
        self.position = position
        """The stream position after the frame."""
        self.payload: memoryview = memoryview(log)[
            claim_at + data.PAYLOAD : claim_at + frame_length
        ]
        """The payload buffer. It must not be used after `commit` or `abort`."""

    @property
    def reserved_value(self) -> int:
        """The 64 bits of the frame header that the application may use."""
        return int(get_i64(self._log, self._claim_at + data.RESERVED_VALUE))

    @reserved_value.setter
    def reserved_value(self, value: int) -> None:
        if not self._is_done:
            put_i64(self._log, self._claim_at + data.RESERVED_VALUE, value)

    def commit(self) -> bool:
        """Publish the claimed frame.

        Returns False if the claim was already committed or aborted, or if the driver unblocked it.
        """
        # A second commit could publish a later claim at the same offset.
        is_done, self._is_done = self._is_done, True
        return not is_done and bool(appender.commit(self._log, self._claim_at))

    def abort(self) -> bool:
        """Turn the claimed frame into padding. Returns the same values as `commit`."""
        is_done, self._is_done = self._is_done, True
        return not is_done and bool(appender.abort(self._log, self._claim_at))

    def __enter__(self) -> memoryview:
        return self.payload

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.commit()
        else:
            self.abort()
