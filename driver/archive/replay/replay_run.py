"""Runs one replay: opens the segment file that contains its start position, then sends blocks until
the replay ends.

    OPENING --file, frame--> CONNECTING --subscriber--> RUNNING (ReplaySession) --> ENDED
       |  OK is sent after this  | no subscriber: timeout

A replay waits for a missing file as long as for a subscriber, because a recording that has just
begun may not have created its file yet. Source: archive-protocol 3.6, 5.3.
"""

import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from windtunnel.driver.archive.protocol.codes import ErrorCode
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.replay.recording_reader import Meter, RecordingReader
from windtunnel.driver.archive.replay.replay_session import ReplaySession
from windtunnel.driver.archive.storage.checksum import Checksum
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication


class ReplayState(Enum):
    """The states of a replay."""

    OPENING = auto()
    CONNECTING = auto()
    RUNNING = auto()
    ENDED = auto()


@dataclass(frozen=True, kw_only=True)
class ReplayPlan:
    """The recording, range and limit of a replay."""

    recording: RecordingDescriptor
    position: int
    end: int
    """The maximum position at which the replay ends."""
    known_end: int
    """The end of the recorded data at the time of the request."""
    limit: Callable[[], int]
    """A function that returns the current end of the data."""
    is_final: Callable[[], bool]
    """A function that returns whether the end of the data cannot change any more."""
    io_max_length: int
    timeout_ns: int
    """The time for which the replay waits for its file, and then for a subscriber."""


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options for reading recordings: directory, checksum, and the meter of read durations."""

    directory: Path
    checksum: Checksum | None = None
    meter: Meter | None = None


class ReplayRun:
    """Runs one replay. Only the replayer's thread uses it."""

    def __init__(
        self, plan: ReplayPlan, publication: ExclusivePublication, options: ReadOptions, now_ns: int
    ) -> None:
        self.plan, self.publication = plan, publication
        self._options = options
        self._deadline_ns = now_ns + plan.timeout_ns
        self._reader: RecordingReader | None = None
        self._session: ReplaySession | None = None
        self.state = ReplayState.OPENING
        self.failure = ""
        """The reason why the replay ended prematurely. It is empty after a regular end, or if the
        subscribers left.
        """
        self.failure_code = ErrorCode.GENERIC

    @property
    def position(self) -> int:
        """The position up to which the recording was sent."""
        return self.plan.position if self._reader is None else self._reader.position

    def do_work(self, now_ns: int) -> int:
        """Run one duty cycle of the replay. Returns the amount of work done."""
        if self.state == ReplayState.OPENING:
            return self._open(now_ns)
        if self.state == ReplayState.CONNECTING:
            return self._connect(now_ns)
        if self._session is None:
            return 0
        work_count = self._session.do_work()
        if self._session.is_done:
            self.state, self.failure = ReplayState.ENDED, self._session.failure
            work_count += 1
        return work_count

    def _open(self, now_ns: int) -> int:
        plan, options = self.plan, self._options
        try:
            self._reader = RecordingReader(
                options.directory, plan.recording, plan.position, checksum=options.checksum,
                io_max_length=plan.io_max_length, meter=options.meter,
            )  # fmt: skip
            is_within = plan.recording.start_position < plan.position != plan.known_end
            if is_within and not self._reader.is_at_frame:
                self.abort(
                    f"no frame of recording {plan.recording.recording_id} begins at position "
                    f"{plan.position}", ErrorCode.INVALID_POSITION,
                )  # fmt: skip
                return 1
        except StorageError as error:
            if now_ns > self._deadline_ns:
                self.abort(str(error))
            return 0
        self.state = ReplayState.CONNECTING
        return 1

    def _connect(self, now_ns: int) -> int:
        assert self._reader is not None
        if self.publication.is_connected:
            self._session = ReplaySession(
                self._reader, self.publication, self.plan.end, self.plan.limit, self.plan.is_final
            )
            self.state = ReplayState.RUNNING
            return 1
        if now_ns > self._deadline_ns:
            self.abort(
                f"timed out waiting for a subscriber to the replay of recording "
                f"{self.plan.recording.recording_id}"
            )
        return 0

    def abort(self, reason: str = "", code: ErrorCode = ErrorCode.GENERIC) -> None:
        """End the replay immediately and revoke its publication. Repeated calls have no effect."""
        if self.state == ReplayState.ENDED:
            return
        self.state, self.failure, self.failure_code = ReplayState.ENDED, reason, code
        if self._session is not None:
            self._session.abort(reason)
            return
        if self._reader is not None:
            self._reader.close()
        self.publication.revoke()

    def fail(self, error: Exception) -> None:
        """End the replay after an unexpected error. Does not raise."""
        trace = "".join(traceback.format_exception(error))
        with suppress(Exception):
            self.abort()
        # If the error occurred in `abort` itself, subscribers still must not wait for more data.
        with suppress(Exception):
            self.publication.revoke()
        self.failure = f"internal error of the replay: {error!r}\n{trace}"
