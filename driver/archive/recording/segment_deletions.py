"""Deletes segment files in the background, one file of each recording per duty cycle.

    begin --OK count--> [ files ] --may begin, once--> one file per duty cycle --> DELETE signal

A recording has at most one deletion at a time. The signal is sent when all files are deleted, or
immediately if there are no files. A replay that starts later does not stop a deletion that has
begun. A file that cannot be deleted is reported and skipped. If a file does not exist, a file that
an older archive renamed for deletion is deleted instead. Source: archive-protocol 5.10.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.control_session import ControlSession
from windtunnel.driver.archive.control.request_rejected import RequestRejected
from windtunnel.driver.archive.protocol.codes import RecordingSignal
from windtunnel.driver.archive.storage import segment_file
from windtunnel.driver.archive.storage.segment_file import DELETED_SUFFIX, SUFFIX


@dataclass
class _Deletion:
    session: ControlSession
    correlation_id: int
    recording_id: int
    files: deque[Path]
    highest_base: int
    may_begin: Callable[[], bool]
    has_begun: bool = False
    """Whether `may_begin` has returned True. It is not called again after that."""


class Deletions:
    """All deletions of segment files in one archive."""

    def __init__(self, resources: ArchiveResources) -> None:
        self._resources = resources
        self._running: dict[int, _Deletion] = {}

    def require_none(self, recording_id: int) -> None:
        """Raise RequestRejected if files of a recording are being deleted."""
        if recording_id in self._running:
            raise RequestRejected(
                f"segment files of recording {recording_id} are being deleted: try again later"
            )

    def highest_base(self, recording_id: int) -> int | None:
        """Return the base position of the last file being deleted, or None if no file is being
        deleted.
        """
        deletion = self._running.get(recording_id)
        return None if deletion is None else deletion.highest_base

    def begin(
        self,
        session: ControlSession,
        correlation_id: int,
        recording_id: int,
        files: Iterable[Path],
        may_begin: Callable[[], bool] = lambda: True,
    ) -> int:
        """Register files for deletion, which starts once `may_begin` returns True. Returns the
        number of files.
        """
        queue = deque(files)
        if queue:
            bases = [_base(path) for path in queue]
            self._running[recording_id] = _Deletion(
                session, correlation_id, recording_id, queue, max(bases), may_begin
            )
        return len(queue)

    def begin_and_respond(
        self,
        session: ControlSession,
        correlation_id: int,
        recording_id: int,
        files: Iterable[Path],
        may_begin: Callable[[], bool] = lambda: True,
        count: int | None = None,
    ) -> None:
        """Start a deletion and send the client the number of files, or `count`, which includes
        files that do not exist. If there is nothing to delete, also send a DELETE signal.
        """
        existing = self.begin(session, correlation_id, recording_id, files, may_begin)
        session.responses.ok(correlation_id, existing if count is None else count)
        if existing == 0:
            session.responses.signal(correlation_id, RecordingSignal.DELETE, recording_id)

    def do_work(self) -> int:
        """Delete one file of each recording that has files to delete. Returns the amount of work
        done.
        """
        work_count = 0
        for each in tuple(self._running.values()):
            each.has_begun = each.has_begun or each.may_begin()
            if each.has_begun:
                work_count += 1
                self._delete(each, each.files.popleft())
                if not each.files:
                    self._end(each)
        return work_count

    def _delete(self, deletion: _Deletion, path: Path) -> None:
        try:
            try:
                path.unlink()
            except FileNotFoundError:
                if path.name.endswith(SUFFIX):
                    path.with_name(path.name[: -len(SUFFIX)] + DELETED_SUFFIX).unlink(
                        missing_ok=True
                    )
        except OSError as error:
            text = f"cannot delete {path}: {error.strerror}"
            self._resources.errors.record(text)
            deletion.session.responses.error(deletion.correlation_id, text)

    def _end(self, deletion: _Deletion) -> None:
        del self._running[deletion.recording_id]
        deletion.session.responses.signal(
            deletion.correlation_id, RecordingSignal.DELETE, deletion.recording_id
        )

    def close(self) -> None:
        """Delete all remaining files immediately."""
        for each in tuple(self._running.values()):
            for path in each.files:
                self._delete(each, path)
            self._end(each)


def _base(path: Path) -> int:
    segment = segment_file.parse_name(path)
    assert segment is not None, path
    return segment.base
