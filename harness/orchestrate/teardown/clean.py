"""Removes what runs have left behind on the machine: processes, namespaces and directories.

This module is used by a lab that goes down, by the cleanup watchdog of a killed harness, and by
`windtunnel clean`, which also removes containers (see `labs.containers`). Nothing that belongs to a
live harness is touched, and each removal is verified.

Only files of this process's effective user are read or removed, because other users can create
files with the same names in /dev/shm. A removal that fails does not stop the others.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.processes import process
from windtunnel.harness.orchestrate.teardown import state
from windtunnel.harness.orchestrate.teardown.state import LabState

NAMESPACE_FOLDER = Path("/run/netns")
KILL_TIMEOUT_S = 5.0
RECORD_TIMEOUT_S = 10.0
SKIPPED_LINES_MAX = 20
"""Maximum number of lines about files of other users, who can create any number of files."""

Report = Callable[[str], None]
"""A callback that receives one line for the user."""


class NotAllRemoved(LabError):
    """Raised if at least one removal failed. All other removals were attempted."""

    def __init__(self, removed: list[str], problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.removed = removed
        self.problems = problems


def processes_in(namespace: str) -> list[int]:
    """Return the ids of all processes in a network namespace."""
    try:
        expected = (NAMESPACE_FOLDER / namespace).stat()
    except FileNotFoundError:
        return []
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            seen = os.stat(f"/proc/{entry}/ns/net")
        except OSError:
            continue
        if (seen.st_dev, seen.st_ino) == (expected.st_dev, expected.st_ino):
            found.append(int(entry))
    return found


def remove_namespace(namespace: str) -> None:
    """Kill all processes in a namespace and delete it. A missing namespace is not an error."""
    deadline_s = time.monotonic() + KILL_TIMEOUT_S
    while pids := [pid for pid in processes_in(namespace) if pid != os.getpid()]:
        if time.monotonic() > deadline_s:
            raise LabError(f"processes {pids} in namespace {namespace} are alive after SIGKILL")
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    if (NAMESPACE_FOLDER / namespace).exists():
        process.run(["ip", "netns", "del", namespace])
    if (NAMESPACE_FOLDER / namespace).exists():
        raise LabError(f"namespace {namespace} still exists after its deletion")


def remove_directory(directory: Path) -> bool:
    """Remove the in-memory directory of this user's lab. Returns whether the directory existed.

    Raises LabError if the path is not a lab's directory. Links and other users' directories are
    left alone.
    """
    if directory.parent != state.MEMORY_ROOT or not directory.name.startswith(state.MEMORY_PREFIX):
        raise LabError(f"{directory} is not a lab's directory and is left alone")
    if not state.is_own_directory(directory):
        return False
    shutil.rmtree(directory, ignore_errors=True)
    if state.is_own_directory(directory):
        raise LabError(f"directory {directory} cannot be removed")
    return True


def remove(record: LabState, labs: Path) -> list[str]:
    """Remove everything that a lab's record names, and then the record file. Returns a line for
    each removal.
    """
    removed = []
    for namespace in record.namespaces:
        if not namespace.startswith(state.NAME_PREFIX):
            raise LabError(
                f"namespace {namespace!r} in a lab's record: "
                f"expected a name that begins with {state.NAME_PREFIX}"
            )
        if (NAMESPACE_FOLDER / namespace).exists():
            remove_namespace(namespace)
            removed.append(f"namespace {namespace}")
    for name in (*record.directories, str(record.memory_directory())):
        if remove_directory(Path(name)):
            removed.append(f"directory {name}")
    (labs / f"{record.token}.json").unlink(missing_ok=True)
    return removed


def remove_recorded(path: Path) -> None:
    """Remove everything that was created by the lab with this record file.

    If the file is rejected, its copy in memory is used. This happens on network file systems that
    map root's files to another user.
    """
    in_memory = state.MEMORY_ROOT / f"{state.MEMORY_PREFIX}{path.stem}" / state.OWNER_FILE
    record = state.load(path) or state.load(in_memory)
    if record is not None:
        remove(record, path.parent)


@dataclass
class _Cleanup:
    """The results of a cleanup: what was removed, and what could not be removed."""

    removed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def attempt(self, what: str, removal: Callable[[], list[str]]) -> None:
        """Execute one removal. If it fails, the failure is recorded, and the cleanup continues."""
        try:
            self.removed += removal()
        except NotAllRemoved as error:
            self.removed += error.removed
            self.problems += error.problems
        except (LabError, OSError) as error:
            self.problems.append(f"{what}: {error}")

    def skip(self, path: Path, reason: str) -> None:
        self.skipped.append(f"{str(path)!r} is left alone: {reason}")

    def report_skipped(self, report: Report) -> None:
        for line in self.skipped[:SKIPPED_LINES_MAX]:
            report(line)
        if more := len(self.skipped[SKIPPED_LINES_MAX:]):
            report(f"{more} more files or directories are left alone")


def print_to_stderr(line: str) -> None:
    """Print a line for the user on stderr."""
    print(f"windtunnel: {line}", file=sys.stderr, flush=True)


def remove_leftovers(runs: Path, report: Report = print_to_stderr) -> list[str]:
    """Remove everything that this user's dead harnesses left behind. Returns one line per removal.

    `runs` is the folder of run folders. Leftovers of other checkouts are found, too. Resources of a
    live harness are neither removed nor reported. `report` receives a line for each record or
    directory that belongs to another user or cannot be read. If a removal failed, raises
    NotAllRemoved after everything else has been removed. Containers are not included (see
    `labs.containers`).
    """
    labs = runs / state.RECORDS
    cleanup = _Cleanup()
    alive: set[str] = set()
    for path in state.record_files(labs):
        try:
            record = state.read(path)
        except FileNotFoundError:
            continue
        except state.RecordError as error:
            _remove_invalid_record(cleanup, path, labs, error)
            continue
        if record.owner_is_alive():
            alive.add(record.token)
        else:
            cleanup.attempt(record.token, partial(remove, record, labs))
    _remove_by_name(cleanup, alive)
    cleanup.report_skipped(report)
    if cleanup.problems:
        raise NotAllRemoved(cleanup.removed, list(dict.fromkeys(cleanup.problems)))
    return cleanup.removed


def _remove_invalid_record(
    cleanup: _Cleanup, path: Path, labs: Path, error: state.RecordError
) -> None:
    """Remove a record file if it is invalid, belongs to this user, and is in this checkout."""
    if path.parent != labs or isinstance(error, state.ForeignRecordError):
        cleanup.skip(path, str(error))
        return

    def removal() -> list[str]:
        path.unlink(missing_ok=True)
        return [f"unreadable record {path}"]

    cleanup.attempt(str(path), removal)


def _remove_by_name(cleanup: _Cleanup, alive: set[str]) -> None:
    """Remove namespaces and directories that have a lab's name but are in no record."""
    # An ordinary user only has namespaces in a private /run. All namespaces in the machine's /run
    # belong to root.
    is_own = state.is_own_directory(NAMESPACE_FOLDER)
    namespaces = sorted(NAMESPACE_FOLDER.glob(f"{state.NAME_PREFIX}*")) if is_own else []
    # This also includes a lab that has started since the records were read, because a lab writes
    # its record first.
    alive = alive | _live_tokens()
    for path in namespaces:
        token = path.name.removeprefix(state.NAME_PREFIX).partition("-")[0]
        if token not in alive:
            cleanup.attempt(path.name, partial(_remove_stray_namespace, path.name))
    for path in state.memory_directories():
        if not state.is_own_directory(path):
            if os.path.lexists(path):
                cleanup.skip(path, "it is not a directory of this user")
        elif path.name.removeprefix(state.MEMORY_PREFIX) not in alive and _is_abandoned(path):
            cleanup.attempt(path.name, partial(_remove_stray_directory, path))


def _remove_stray_namespace(namespace: str) -> list[str]:
    remove_namespace(namespace)
    return [f"namespace {namespace}"]


def _remove_stray_directory(directory: Path) -> list[str]:
    return [f"directory {directory}"] if remove_directory(directory) else []


def _live_tokens() -> set[str]:
    """Return the unique ids (tokens) of this user's labs whose harness is still running."""
    records = [state.load(path) for path in state.memory_records()]
    return {each.token for each in records if each is not None and each.owner_is_alive()}


def _is_abandoned(directory: Path) -> bool:
    """Return whether a directory without a lab record is so old that no lab can still be in the
    process of writing the record. A time in the future is of a clock that was stepped back.
    """
    try:
        age_s = time.time() - directory.lstat().st_mtime
    except FileNotFoundError:
        return False
    return abs(age_s) > RECORD_TIMEOUT_S
