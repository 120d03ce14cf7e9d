"""Removes old suite and matrix folders from the runs folder, for `windtunnel clean --runs`.

    runs/<suite id>/suite.json            with the schema and the name of its folder: a suite
    runs/matrix-<suite id>/matrix.json    in the same way: a matrix
    everything else                       is left alone

A folder is only removed if it is certainly a suite or matrix: a real directory of this user whose
name is a suite id and whose document names it. Symbolic links are neither followed nor removed. A
suite that may still be running is kept.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.run.matrix import Matrix
from windtunnel.harness.artifact.run.suite import Suite
from windtunnel.harness.artifact.suite_dir import MatrixDir, SuiteDir
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.teardown import state

BLOCK_BYTES = 512
"""The unit of `st_blocks`. It does not depend on the file system."""

ABANDONED_S = 24 * 3600.0
"""Age of the last change after which a suite without an exit code is considered killed."""

_SUITE_ID = r"\d{8}T\d{6}Z-[0-9a-f]{4}"
_MATRIX_PREFIX = "matrix-"
_NAME = re.compile(f"(?:{_MATRIX_PREFIX})?({_SUITE_ID})")


@dataclass(frozen=True)
class OldSuite:
    """A suite or matrix folder in the runs folder."""

    path: Path
    document: Path
    """The file that identifies the folder. It is removed last."""

    size_bytes: int
    """Disk space that removing the folder frees, without files that other folders link to."""

    may_run: bool
    """Whether the suite may still be running, because it has no exit code."""

    @property
    def key(self) -> str:
        """The id by which suites are sorted. Newer suites have greater ids."""
        return self.path.name.removeprefix(_MATRIX_PREFIX)


def find_suites(runs: Path, now_s: float | None = None) -> list[OldSuite]:
    """Return the suites and matrices in the runs folder, oldest first."""
    now_s = time.time() if now_s is None else now_s
    live = _live_suites(runs)
    try:
        names = os.listdir(runs)
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = (_suite(runs / name, live, now_s) for name in names if _NAME.fullmatch(name))
    return sorted((each for each in found if each is not None), key=lambda each: each.key)


def select(suites: list[OldSuite], keep: int) -> list[OldSuite]:
    """Return the suites to remove, oldest first. The newest `keep` suites and all running suites
    are kept.
    """
    return [each for each in suites[: max(0, len(suites) - keep)] if not each.may_run]


def remove_suite(suite: OldSuite) -> None:
    """Remove a suite folder. Raises LabError if any part of it remains.

    The identifying document is removed last, so an interrupted removal can be repeated.
    """
    try:
        folder = os.open(suite.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for name in os.listdir(folder):
                if name != suite.document.name:
                    _remove_entry(folder, name)
            os.unlink(suite.document.name, dir_fd=folder)
        finally:
            os.close(folder)
        os.rmdir(suite.path)
    except OSError as error:
        place = error.filename if isinstance(error.filename, str) else suite.path.name
        raise LabError(f"{suite.path}: cannot remove {place}: {error.strerror}") from error


def _remove_entry(folder: int, name: str) -> None:
    """Remove a file, a link, or a folder with its contents. Links are not followed."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISDIR(mode):
        shutil.rmtree(name, dir_fd=folder)
    else:
        os.unlink(name, dir_fd=folder)


def _suite(path: Path, live: set[str], now_s: float) -> OldSuite | None:
    """Return the suite or matrix in a folder, or None if the folder may contain something else."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return None
    try:
        if path.name.startswith(_MATRIX_PREFIX):
            document, matrix = MatrixDir(path).document, Matrix.read(MatrixDir(path).document)
            named, code = (matrix.matrix_id, matrix.exit_code) if matrix else ("", None)
        else:
            document, suite = SuiteDir(path).document, Suite.read(SuiteDir(path).document)
            named, code = (suite.suite_id, suite.exit_code) if suite else ("", None)
    except (DocumentError, OSError):
        return None
    if named != path.name:
        return None
    changed_s = max(each.st_mtime for each in (status, *_statuses(path, depth=1)))
    # A time in the future is of a clock that was stepped back.
    may_run = code is None and (path.name in live or abs(now_s - changed_s) < ABANDONED_S)
    return OldSuite(path, document, _freed_bytes(path), may_run)


def _live_suites(runs: Path) -> set[str]:
    """Return the names of the suite folders in which a running harness has a lab."""
    records = [state.load(path) for path in state.record_files(runs / state.RECORDS)]
    return {
        each.run_id.partition("/")[0]
        for each in records
        if each is not None and each.owner_is_alive()
    }


def _statuses(folder: Path, depth: int = -1) -> Iterator[os.stat_result]:
    """Yield the `os.stat_result` of every entry in a folder, to any depth if `depth` is negative.

    Links are not followed.
    """
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        with contextlib.suppress(FileNotFoundError):
            yield entry.stat(follow_symlinks=False)
        if depth != 1 and entry.is_dir(follow_symlinks=False):
            yield from _statuses(Path(entry.path), depth - 1)


def _freed_bytes(folder: Path) -> int:
    """Return the disk space in bytes that removing a folder frees."""
    names: dict[tuple[int, int], int] = {}
    freed = folder.lstat().st_blocks
    for status in _statuses(folder):
        if stat.S_ISDIR(status.st_mode):
            freed += status.st_blocks
            continue
        identity = status.st_dev, status.st_ino
        names[identity] = names.get(identity, 0) + 1
        # A file's space is freed when its last name is removed, for example that of a payload in
        # two runs.
        if names[identity] == status.st_nlink:
            freed += status.st_blocks
    return freed * BLOCK_BYTES
