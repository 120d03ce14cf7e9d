"""A shared-memory record through which a benchmark and one of its load generators communicate.

    benchmark --order--> [ state | order | message_count | fault | expected | found ] <--rest-- load

Every field has one writer and is an aligned eight-byte word, so a reader never sees a torn value.
The round-trip times of a load are in a file next to the record, as int64 nanoseconds. The first
`message_count` of them are valid.
"""

from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BOARD = np.dtype(
    [
        ("state", "<i8"),
        ("order", "<i8"),
        ("message_count", "<i8"),  # sent, received or round trips, without a fault
        ("fault", "<i8"),
        ("expected", "<i8"),  # details of a fault: a sequence number, a length, an error code
        ("found", "<i8"),
        ("began_ns", "<i8"),  # monotonic clock: when the measured traffic began, if set
        ("ended_ns", "<i8"),
        # time in calls of the client, and processor time of these calls
        ("busy_ns", "<i8"),
        ("busy_processor_ns", "<i8"),
    ]
)
LATENCIES_MAX = 1 << 22


class State(IntEnum):
    """The progress of a load generator."""

    STARTING = 0
    SUBSCRIBED = 1
    CONNECTED = 2
    ENDED = 3
    """The load sends no more messages, but its streams are still open."""
    RECORDED = 4
    """An archive load: the recording contains all messages sent, and is closed."""
    REPLAYED = 5
    """An archive load: all recorded messages were replayed."""


class Command(IntEnum):
    """The benchmark's command to a load generator."""

    GO_ON = 0
    STOP = 1
    LEAVE = 2
    RECORD = 3
    REPLAY = 4


class Fault(IntEnum):
    """The reason why the figures of a load generator are invalid."""

    NONE = 0
    SEQUENCE = 1
    LENGTH = 2
    BROKEN_FRAME = 3
    STREAM_LOST = 4
    OFFER_REFUSED = 5
    CLIENT_CLOSED = 6
    ECHO_LOST = 7
    OUT_OF_ROOM = 8
    TOO_LONG = 9
    POSITION = 10
    REPLAYED = 11
    CONTENT = 12


FAULT_TEXTS = {
    Fault.NONE: "no fault",
    Fault.SEQUENCE: "lost or reordered: expected message {expected}, found {found}",
    Fault.LENGTH: "expected a message of {expected} bytes, found {found}",
    Fault.BROKEN_FRAME: "expected a frame, found a length of {found}",
    Fault.STREAM_LOST: "the stream disconnected after message {found}",
    Fault.OFFER_REFUSED: "the offer of message {expected} failed with code {found}",
    Fault.CLIENT_CLOSED: "the client was closed after message {found}",
    Fault.ECHO_LOST: "message {expected} did not return within {found} s",
    Fault.OUT_OF_ROOM: "more than the limit of {expected} round trips",
    Fault.TOO_LONG: "did not complete within {expected} s",
    Fault.POSITION: "expected the recording to end at position {expected}, found {found}",
    Fault.CONTENT: "message {expected} has other bytes than were sent",
    Fault.REPLAYED: "expected {expected} replayed messages, as recorded, found {found}",
}
assert FAULT_TEXTS.keys() == set(Fault)

Found = tuple[int, int, int]
"""A fault, the expected value and the value found instead."""


class Board:
    """The counter board of one load generator: its record in shared memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._record: NDArray[Any] = np.memmap(path, dtype=BOARD, mode="r+", shape=(1,))
        self.counts: NDArray[np.int64] = self._record["message_count"]
        """The message count, int64[1], for compiled loops."""
        self._orders: NDArray[np.int64] = self._record["order"]

    @classmethod
    def create(cls, path: Path) -> "Board":
        """Create a counter board file that is filled with zeros."""
        path.write_bytes(bytes(BOARD.itemsize))
        return cls(path)

    @property
    def state(self) -> State:
        return State(int(self._record["state"][0]))

    @state.setter
    def state(self, state: State) -> None:
        self._record["state"][0] = state

    @property
    def order(self) -> Command:
        return Command(int(self._orders[0]))

    @order.setter
    def order(self, order: Command) -> None:
        self._orders[0] = order

    @property
    def is_stopped(self) -> bool:
        """Whether the load generator should stop sending. The generator checks this in every
        iteration.
        """
        return bool(self._orders[0])

    @property
    def message_count(self) -> int:
        return int(self.counts[0])

    @message_count.setter
    def message_count(self, count: int) -> None:
        self.counts[0] = count

    @property
    def busy_ns(self) -> tuple[int, int]:
        """The nanoseconds spent in calls of the client, and their processor time. The count of
        their messages may be one burst behind.
        """
        return int(self._record["busy_ns"][0]), int(self._record["busy_processor_ns"][0])

    def add_burst(self, busy_ns: int, processor_ns: int, count: int) -> None:
        """Add the messages of a burst, the nanoseconds spent in its calls, and their processor
        time.
        """
        self._record["busy_ns"][0] += busy_ns
        self._record["busy_processor_ns"][0] += processor_ns
        self.counts[0] += count

    @property
    def fault(self) -> Fault:
        return Fault(int(self._record["fault"][0]))

    @property
    def duration_ns(self) -> int:
        """Duration of the measured traffic in nanoseconds."""
        return int(self._record["ended_ns"][0] - self._record["began_ns"][0])

    def set_times(self, began_ns: int, ended_ns: int) -> None:
        """Record the start and end times of the measured traffic."""
        self._record["began_ns"][0], self._record["ended_ns"][0] = began_ns, ended_ns

    def set_fault(self, fault: Fault, expected: int = 0, found: int = 0) -> None:
        """Record why the figures are invalid. Only the first fault is kept."""
        if self.fault is Fault.NONE:
            self._record["expected"][0], self._record["found"][0] = expected, found
            self._record["fault"][0] = fault

    def set_found(self, found: Found) -> None:
        """Record what a compiled loop found, unless it found no fault."""
        fault, expected, other = found
        if fault != Fault.NONE:
            self.set_fault(Fault(int(fault)), expected=int(expected), found=int(other))

    @property
    def fault_text(self) -> str:
        """A description of the fault, or an empty string if there is no fault."""
        if self.fault is Fault.NONE:
            return ""
        numbers = {name: int(self._record[name][0]) for name in ("expected", "found")}
        return FAULT_TEXTS[self.fault].format(**numbers)


def latencies_file(board: Path) -> Path:
    """Return the path of the file with a load generator's round-trip times, given the path of its
    counter board.
    """
    return board.with_suffix(".latencies")
