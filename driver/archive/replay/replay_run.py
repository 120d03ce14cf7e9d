"""One replay from the file of its first position to its end.

    OPENING --file, frame--> CONNECTING --subscriber--> RUNNING (ReplaySession) --> ENDED
       |  OK may be said now     | nobody came

A file that is missing is waited for as long as a subscriber is: a recording that has just begun may
not have it yet. Source: archive-protocol 3.6, 5.3.
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
    """How far a replay is."""

    OPENING = auto()
    CONNECTING = auto()
    RUNNING = auto()
    ENDED = auto()


@dataclass(frozen=True, kw_only=True)
class ReplayPlan:
    """What is to be replayed."""

    recording: RecordingDescriptor
    position: int
    end: int
    "Where it ends at the latest."
    known_end: int
    "Up to where there was data when it was asked for."
    limit: Callable[[], int]
    "Up to where there is data now."
    is_final: Callable[[], bool]
    "Whether there will never be more."
    io_max_length: int
    timeout_ns: int
    "How long it waits for its file and for a subscriber."


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How recordings are read."""

    directory: Path
    checksum: Checksum | None = None
    meter: Meter | None = None


class ReplayRun:
    """Runs one replay, in the replayer's thread."""

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
        """Why it ended before its end; empty after a good end, or where the subscribers went."""
        self.failure_code = ErrorCode.GENERIC

    @property
    def position(self) -> int:
        """Up to where it was sent."""
        return self.plan.position if self._reader is None else self._reader.position

    def do_work(self, now_ns: int) -> int:
        """Go on. Returns an amount of work."""
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
                f"nobody subscribed to the replay of recording "
                f"{self.plan.recording.recording_id} in time"
            )
        return 0

    def abort(self, why: str = "", code: ErrorCode = ErrorCode.GENERIC) -> None:
        """End it now: what subscribers have not read yet is taken back. May be called again."""
        if self.state == ReplayState.ENDED:
            return
        self.state, self.failure, self.failure_code = ReplayState.ENDED, why, code
        if self._session is not None:
            self._session.abort(why)
            return
        if self._reader is not None:
            self._reader.close()
        self.publication.revoke()

    def fail(self, error: Exception) -> None:
        """End it because of an error that nobody foresaw; raises none itself."""
        way = "".join(traceback.format_exception(error))
        with suppress(Exception):
            self.abort()
        # What ended it may be the end itself: its subscribers shall not wait for more.
        with suppress(Exception):
            self.publication.revoke()
        self.failure = f"the replay has met an error: {error!r}\n{way}"
