"""The duty cycle of the archive conductor.

    client --> control sessions --> requests --> operations --> recorder, replayer
                    ^                                                  |
                    `----- responses, signals <--- ended sessions <----'

A duty cycle first handles ended recordings and replays, then requests, and finally new images. With
this order, a recorder and replayer in the same thread have processed one request before the next
one is read. Everything except recording and replaying runs in the conductor's thread.
Source: archive-protocol 4.5, 5.7.
"""

from collections.abc import Callable
from typing import Any

from windtunnel.driver.archive.conductor.request_table import Operations, RequestTable
from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.control_sessions import ControlSessions
from windtunnel.driver.archive.observation import error_text
from windtunnel.driver.archive.observation.cycle_time import CycleTime
from windtunnel.driver.archive.recording.segment_deletions import Deletions
from windtunnel.driver.archive.storage.mark_file_writer import MarkFile
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.base.system import NS_PER_SECOND
from windtunnel.driver.client.errors import ClientTerminatedError

MARK_FILE_INTERVAL_NS = NS_PER_SECOND


class ArchiveFailure(DriverError):
    """A failure after which the archive cannot continue. The message contains the reason."""


class ArchiveConductor:
    """The conductor of one archive."""

    def __init__(
        self,
        resources: ArchiveResources,
        sessions: ControlSessions,
        operations: Operations,
        deletions: Deletions,
        mark_file: MarkFile,
        cycle_time: CycleTime,
    ) -> None:
        self._resources, self._sessions = resources, sessions
        self._operations, self._deletions = operations, deletions
        self._requests = RequestTable(resources, operations)
        self._mark_file, self._cycle_time = mark_file, cycle_time
        self._touch_ns = resources.clock.now_ns()

    def do_work(self, now_ns: int) -> int:
        """Run one duty cycle of the conductor. Returns the amount of work done.

        Raises ArchiveFailure if the Aeron client has been closed.
        """
        resources, operations = self._resources, self._operations
        self._cycle_time.on_turn(now_ns)
        if now_ns >= self._touch_ns:
            self._touch_ns = now_ns + MARK_FILE_INTERVAL_NS
            self._mark_file.touch()
        work_count = resources.client.invoke()
        if resources.client.is_closed:
            text = f"the client of the media driver: {resources.client.failure}"
            raise ArchiveFailure(text) from resources.client.termination
        # Replications run first: their end must be signalled before the end of their recordings.
        run = self._run_part
        work_count += run("replications", operations.replications.do_work, now_ns)
        # Requests run later: a client that received the stop signal may purge in its next request.
        work_count += run("recordings", operations.recordings.finish)
        work_count += run("replays", operations.replays.do_work, now_ns)
        # Images that arrive with a response wait for the requests that the response may cause:
        # `begin` skips the images of streams whose request has no response yet.
        arrived_count = operations.recordings.arrived_count
        now_ms, on_request = resources.clock.now_ms(), self._requests.on_request
        work_count += run("control sessions", self._sessions.do_work, now_ns, now_ms, on_request)
        work_count += run("recordings", operations.recordings.begin, arrived_count)
        work_count += run("recordings", operations.recordings.respond)
        return work_count + run("deletions", self._deletions.do_work)

    def _run_part(self, name: str, do_work: Callable[..., int], *arguments: Any) -> int:
        """Run one part of the duty cycle. An unexpected error is logged and does not stop the other
        parts.

        Raises ClientTerminatedError, because no part can continue without a driver.
        """
        try:
            return do_work(*arguments)
        except ClientTerminatedError:
            raise
        except Exception as error:
            self._resources.errors.record(f"{name}: {error_text.describe_error(error)}")
            return 1

    def close(self) -> None:
        """Write stop positions and send final signals. The recorder and the replayer must have
        ended first.
        """
        operations = self._operations
        parts = (operations.replications, operations.recordings, self._deletions, self._sessions)
        for part in parts:
            try:
                part.close()
            except Exception as error:
                # If one part cannot be closed, perhaps because the driver is gone, the others
                # must still write their state.
                self._resources.errors.record(f"close: {error_text.describe_error(error)}")
