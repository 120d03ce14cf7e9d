"""A frame of the log that waits for its payload, to be written in place."""

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
    """Claim one frame for a payload of `length` bytes; threads may share the appender.

    Shapes:  state APPENDER[1], log uint8[n], values uint8[m] with the limit at byte `limit_at`
    Returns: (the position after it or a code, where the frame begins in the log)
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
    """A claimed frame: write to `payload`, then `commit`, or `abort`.

    As a context manager it commits, or aborts when the block raises. The stream stands still until
    one of both; a claim that is forgotten is unblocked by the driver after some seconds. The log
    stays mapped as long as the claim lives, even when the publication is closed meanwhile.
    """

    def __init__(self, log: np.ndarray, claim_at: int, frame_length: int, position: int) -> None:
        self._log = log
        self._claim_at = claim_at
        self._is_done = False
        self.position = position
        """The stream's position behind it."""
        self.payload: memoryview = memoryview(log)[
            claim_at + data.PAYLOAD : claim_at + frame_length
        ]
        """Where the message is written; not to be used after `commit` or `abort`."""

    @property
    def reserved_value(self) -> int:
        """The 64 bits of the header that belong to the application."""
        return int(get_i64(self._log, self._claim_at + data.RESERVED_VALUE))

    @reserved_value.setter
    def reserved_value(self, value: int) -> None:
        if not self._is_done:
            put_i64(self._log, self._claim_at + data.RESERVED_VALUE, value)

    def commit(self) -> bool:
        """Let readers see it. Returns False when it was done before, or the driver unblocked it."""
        # Later, the same place may be somebody else's claim.
        is_done, self._is_done = self._is_done, True
        return not is_done and bool(appender.commit(self._log, self._claim_at))

    def abort(self) -> bool:
        """Give it up; readers pass over it. Returns as `commit` does."""
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
