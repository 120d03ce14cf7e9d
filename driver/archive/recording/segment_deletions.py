"""Segment files that are to go: one list at a time for each recording, one file in each turn.

    begin --OK count--> [ files ] --may begin, once--> a file a turn --> DELETE

The signal comes when all are gone; at once where there are none. What has begun goes on, whoever
reads from then on what is left. A file that cannot be deleted is told and passed over. Where it is
not there, what an older archive renamed it to before deleting it is taken away.
Source: archive-protocol 5.10.
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
    "Whether `may_begin` has said so; what it would say now stops nothing any more."


class Deletions:
    """What is being deleted by one archive."""

    def __init__(self, facilities: ArchiveResources) -> None:
        self._facilities = facilities
        self._running: dict[int, _Deletion] = {}

    def require_none(self, recording_id: int) -> None:
        """Raise Refusal while files of this recording are being deleted."""
        if recording_id in self._running:
            raise RequestRejected(
                f"another delete operation in progress for recording id: {recording_id}"
            )

    def highest_base(self, recording_id: int) -> int | None:
        """The base of the last file that is being deleted; None where none is."""
        found = self._running.get(recording_id)
        return None if found is None else found.highest_base

    def begin(
        self,
        session: ControlSession,
        correlation_id: int,
        recording_id: int,
        files: Iterable[Path],
        may_begin: Callable[[], bool] = lambda: True,
    ) -> int:
        """Delete files from now on, once `may_begin` says so. Returns how many there are."""
        queue = deque(files)
        if queue:
            bases = [_base(path) for path in queue]
            self._running[recording_id] = _Deletion(
                session, correlation_id, recording_id, queue, max(bases), may_begin
            )
        return len(queue)

    def answer(
        self,
        session: ControlSession,
        correlation_id: int,
        recording_id: int,
        files: Iterable[Path],
        may_begin: Callable[[], bool] = lambda: True,
    ) -> None:
        """`begin`, and tell the client how many; and that all are gone where there are none."""
        count = self.begin(session, correlation_id, recording_id, files, may_begin)
        session.ok(correlation_id, count)
        if count == 0:
            session.signal(correlation_id, RecordingSignal.DELETE, recording_id)

    def do_work(self) -> int:
        """Delete one file of each recording. Returns an amount of work."""
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
            self._facilities.errors.record(text)
            deletion.session.error(deletion.correlation_id, text)

    def _end(self, deletion: _Deletion) -> None:
        del self._running[deletion.recording_id]
        deletion.session.signal(
            deletion.correlation_id, RecordingSignal.DELETE, deletion.recording_id
        )

    def close(self) -> None:
        """Delete what is left, at once."""
        for each in tuple(self._running.values()):
            for path in each.files:
                self._delete(each, path)
            self._end(each)


def _base(path: Path) -> int:
    found = segment_file.parsed(path)
    assert found is not None, path
    return found.base
