"""Remove what runs have left on the machine: processes, namespaces, directories, containers.

Used in three places: by a lab that goes down, by the keeper of a harness that was killed, and by
`windtunnel clean`. It never touches what belongs to a harness that is alive, and it proves each
removal by looking again.

Only what belongs to the effective user of this process is read or removed: other users can create
files with our names in memory. Each thing is removed by itself, so that a failure stops no other.
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
"""Other users can create any number of files; no more lines than these are printed about them."""

Tell = Callable[[str], None]
"""Takes one line for a person."""


class NotAllRemoved(LabError):
    """Some things could not be removed; everything else was."""

    def __init__(self, removed: list[str], problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.removed = removed
        self.problems = problems


def processes_in(namespace: str) -> list[int]:
    """Return the ids of all processes whose network is this namespace."""
    try:
        wanted = (NAMESPACE_FOLDER / namespace).stat()
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
        if (seen.st_dev, seen.st_ino) == (wanted.st_dev, wanted.st_ino):
            found.append(int(entry))
    return found


def remove_namespace(namespace: str) -> None:
    """Kill all that runs in a namespace, then delete it; no error if it does not exist."""
    deadline_s = time.monotonic() + KILL_TIMEOUT_S
    while pids := [pid for pid in processes_in(namespace) if pid != os.getpid()]:
        if time.monotonic() > deadline_s:
            raise LabError(f"processes {pids} in namespace {namespace} survive SIGKILL")
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    if (NAMESPACE_FOLDER / namespace).exists():
        process.run(["ip", "netns", "del", namespace])
    if (NAMESPACE_FOLDER / namespace).exists():
        raise LabError(f"namespace {namespace} is still there after its deletion")


def remove_directory(directory: Path) -> bool:
    """Remove a directory in memory that this user's lab made, and return whether there was one.

    Raises LabError for any path that a lab cannot have made. A link or a directory of another user
    is left alone.
    """
    if directory.parent != state.MEMORY_ROOT or not directory.name.startswith(state.MEMORY_PREFIX):
        raise LabError(f"{directory} is not a directory that a lab makes; it is left alone")
    if not state.is_own_directory(directory):
        return False
    shutil.rmtree(directory, ignore_errors=True)
    if state.is_own_directory(directory):
        raise LabError(f"directory {directory} cannot be removed")
    return True


def remove(record: LabState, labs: Path) -> list[str]:
    """Remove all that a record names, its own files last, and return what was really there."""
    removed = []
    for namespace in record.namespaces:
        if not namespace.startswith(state.NAME_PREFIX):
            raise LabError(f"namespace {namespace!r} in a lab's record is not one of ours")
        if (NAMESPACE_FOLDER / namespace).exists():
            remove_namespace(namespace)
            removed.append(f"namespace {namespace}")
    for name in (*record.directories, str(record.memory_directory())):
        if remove_directory(Path(name)):
            removed.append(f"directory {name}")
    (labs / f"{record.token}.json").unlink(missing_ok=True)
    return removed


def remove_recorded(path: Path) -> None:
    """Remove all that the lab with this record file made.

    The copy in memory is used if the file is refused, as on a network file system that gives the
    files of root to another user.
    """
    in_memory = state.MEMORY_ROOT / f"{state.MEMORY_PREFIX}{path.stem}" / state.OWNER_FILE
    record = state.load(path) or state.load(in_memory)
    if record is not None:
        remove(record, path.parent)


@dataclass
class _Sweep:
    """What one search of the machine has found so far."""

    removed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def attempt(self, what: str, removal: Callable[[], list[str]]) -> None:
        """Remove something; a failure is kept for the end."""
        try:
            self.removed += removal()
        except NotAllRemoved as error:
            self.removed += error.removed
            self.problems += error.problems
        except (LabError, OSError) as error:
            self.problems.append(f"{what}: {error}")

    def skip(self, path: Path, reason: str) -> None:
        self.skipped.append(f"{str(path)!r} is left alone: {reason}")

    def tell_skipped(self, tell: Tell) -> None:
        for line in self.skipped[:SKIPPED_LINES_MAX]:
            tell(line)
        if more := len(self.skipped[SKIPPED_LINES_MAX:]):
            tell(f"{more} more files or directories are left alone")


def on_stderr(line: str) -> None:
    """Print a line for a person who looks at the terminal."""
    print(f"windtunnel: {line}", file=sys.stderr, flush=True)


def remove_left_overs(runs: Path, tell: Tell = on_stderr) -> list[str]:
    """Remove everything that dead harnesses of this user left; return a line for each removal.

    `runs` is the folder of run folders; left-overs of other checkouts are found as well. What a
    living harness owns stays, and is not mentioned. `tell` is given a line for each record and each
    directory that is not this user's or cannot be read. Raises NotAllRemoved, after everything else
    has been removed.
    """
    labs = runs / ".lab"
    sweep = _Sweep()
    alive: set[str] = set()
    for path in state.record_files(labs):
        try:
            record = state.read(path)
        except FileNotFoundError:
            continue
        except state.RecordError as error:
            _dispose(sweep, path, labs, error)
            continue
        if record.owner_is_alive():
            alive.add(record.token)
        else:
            sweep.attempt(record.token, partial(remove, record, labs))
    _remove_by_name(sweep, alive)
    sweep.attempt("containers", _remove_containers)
    sweep.tell_skipped(tell)
    if sweep.problems:
        raise NotAllRemoved(sweep.removed, list(dict.fromkeys(sweep.problems)))
    return sweep.removed


def _dispose(sweep: _Sweep, path: Path, labs: Path, error: state.RecordError) -> None:
    """Remove a file of this user among the records that is not one; leave any other alone."""
    if path.parent != labs or isinstance(error, state.ForeignRecordError):
        sweep.skip(path, str(error))
        return

    def removal() -> list[str]:
        path.unlink(missing_ok=True)
        return [f"unreadable record {path}"]

    sweep.attempt(str(path), removal)


def _remove_by_name(sweep: _Sweep, alive: set[str]) -> None:
    """Remove namespaces and directories that have our prefix and that no record mentions."""
    # An ordinary user has namespaces only below a private /run; in that of the machine all are
    # root's.
    ours = state.is_own_directory(NAMESPACE_FOLDER)
    namespaces = sorted(NAMESPACE_FOLDER.glob(f"{state.NAME_PREFIX}*")) if ours else []
    # A lab that has begun since the records were read: it wrote its own before it made anything.
    alive = alive | _living_in_memory()
    for path in namespaces:
        token = path.name.removeprefix(state.NAME_PREFIX).partition("-")[0]
        if token not in alive:
            sweep.attempt(path.name, partial(_remove_stray_namespace, path.name))
    for path in state.memory_directories():
        if not state.is_own_directory(path):
            if os.path.lexists(path):
                sweep.skip(path, "it is not a directory of this user")
        elif path.name.removeprefix(state.MEMORY_PREFIX) not in alive and _is_abandoned(path):
            sweep.attempt(path.name, partial(_remove_stray_directory, path))


def _remove_stray_namespace(namespace: str) -> list[str]:
    remove_namespace(namespace)
    return [f"namespace {namespace}"]


def _remove_stray_directory(directory: Path) -> list[str]:
    return [f"directory {directory}"] if remove_directory(directory) else []


def _living_in_memory() -> set[str]:
    """Return the tokens of all labs of this user whose harness is alive."""
    records = [state.load(path) for path in state.memory_records()]
    return {each.token for each in records if each is not None and each.owner_is_alive()}


def _is_abandoned(directory: Path) -> bool:
    """Whether nobody can still be about to write the record that belongs into a directory."""
    try:
        age_s = time.time() - directory.lstat().st_mtime
    except FileNotFoundError:
        return False
    return age_s > RECORD_TIMEOUT_S


def _remove_containers() -> list[str]:
    """Let the container lab remove its own, where there is an engine to ask."""
    try:
        from windtunnel.harness.orchestrate.labs import containers
    except ImportError:
        return []
    return list(containers.remove_left_overs())
