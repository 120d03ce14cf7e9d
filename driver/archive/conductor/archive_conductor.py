"""The duty cycle of an archive's conductor.

    client --> control sessions --> requests --> operations --> recorder, replayer
                    ^                                                  |
                    `------ answers, signals <--- what has ended <-----'

A turn begins with what has ended, so recorder and replayer of the same thread have obeyed one
request before the next is heard; then come requests, and after them the images that are new.
Everything but recording and replaying happens in its thread. Source: archive-protocol 4.5, 5.7.
"""

from collections.abc import Callable
from typing import Any, Protocol

from windtunnel.driver.archive.conductor.request_table import Operations, RequestTable
from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.control_sessions import ControlSessions
from windtunnel.driver.archive.observation import unforeseen
from windtunnel.driver.archive.observation.cycle_time import CycleTime
from windtunnel.driver.archive.recording.segment_deletions import Deletions
from windtunnel.driver.archive.storage.mark_file import MarkFile
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.base.system import NS_PER_SECOND
from windtunnel.driver.client.errors import ClientTerminatedError

MARK_FILE_INTERVAL_NS = NS_PER_SECOND


class ArchiveFailure(DriverError):
    """The archive cannot go on; the text says why."""


class Turns(Protocol):
    """Something else that wants turns."""

    def do_work(self, now_ns: int) -> int:
        """Go on. Returns an amount of work."""


class ArchiveConductor:
    """One archive's conductor."""

    def __init__(
        self,
        facilities: ArchiveResources,
        sessions: ControlSessions,
        operations: Operations,
        deletions: Deletions,
        mark_file: MarkFile,
        cycle_time: CycleTime,
    ) -> None:
        self._facilities, self._sessions = facilities, sessions
        self._operations, self._deletions = operations, deletions
        self._requests = RequestTable(facilities, operations)
        self._mark_file, self._cycle_time = mark_file, cycle_time
        self._touch_ns = facilities.clock.now_ns()

    def do_work(self, now_ns: int) -> int:
        """One turn. Returns an amount of work. Raises ArchiveFailure where the driver is gone."""
        facilities, operations = self._facilities, self._operations
        self._cycle_time.on_turn(now_ns)
        if now_ns >= self._touch_ns:
            self._touch_ns = now_ns + MARK_FILE_INTERVAL_NS
            self._mark_file.touch()
        work_count = facilities.client.invoke()
        if facilities.client.is_closed:
            text = f"the client of the media driver: {facilities.client.failure}"
            raise ArchiveFailure(text) from facilities.client.termination
        # Before recordings: that a copy has ended is told before the end of its recording.
        part = self._part
        work_count += part("replications", operations.replications.do_work, now_ns)
        # Before requests: who was told that it has stopped may purge it with the next.
        work_count += part("recordings", operations.recordings.finish)
        work_count += part("replays", operations.replays.do_work, now_ns)
        # One that comes with the answer to a request waits for those which that answer may cause.
        arrived_count = operations.recordings.arrived_count
        now_ms, on_request = facilities.clock.now_ms(), self._requests.on_request
        work_count += part("control sessions", self._sessions.do_work, now_ns, now_ms, on_request)
        work_count += part("recordings", operations.recordings.begin, arrived_count)
        return work_count + part("deletions", self._deletions.do_work)

    def _part(self, name: str, turn: Callable[..., int], *given: Any) -> int:
        """The turn of one part: an error that nobody foresaw may not keep the others from theirs.

        Raises ClientTerminatedError: without a driver no part can go on.
        """
        try:
            return turn(*given)
        except ClientTerminatedError:
            raise
        except Exception as error:
            self._facilities.errors.record(f"{name}: {unforeseen.told(error)}")
            return 1

    def close(self) -> None:
        """Recorder and replayer have ended: write down and tell how everything stopped."""
        operations = self._operations
        parts = (operations.replications, operations.recordings, self._deletions, self._sessions)
        for part in parts:
            try:
                part.close()
            except Exception as error:
                # That one cannot be closed, perhaps for want of a driver, is no reason for the
                # others to leave anything unwritten.
                self._facilities.errors.record(f"close: {unforeseen.told(error)}")
