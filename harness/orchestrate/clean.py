"""Remove what runs have left on the machine: processes, namespaces, directories, containers.

Used in three places: by a lab that goes down, by the keeper of a harness that was killed, and by
`windtunnel clean`. It never touches what belongs to a harness that is alive, and it proves each
removal by looking again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path

from harness.orchestrate import process, state
from harness.orchestrate.lab import LabError
from harness.orchestrate.state import LabState

NAMESPACE_FOLDER = Path("/run/netns")
KILL_TIMEOUT_S = 5.0
RECORD_TIMEOUT_S = 10.0


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
    """Remove a directory of ours in memory and return whether it was there.

    Refuses any path that a lab cannot have made.
    """
    if directory.parent != state.MEMORY_ROOT or not directory.name.startswith(state.MEMORY_PREFIX):
        raise LabError(f"{directory} is not a directory that a lab makes; it is left alone")
    was_there = directory.exists()
    shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():
        raise LabError(f"directory {directory} cannot be removed")
    return was_there


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


def remove_left_overs(runs: Path) -> list[str]:
    """Remove everything that dead harnesses left; return one line for each thing removed.

    `runs` is the folder of run folders; left-overs of other checkouts are found as well. What a
    living harness owns stays, and is not mentioned.
    """
    labs = runs / ".lab"
    removed: list[str] = []
    alive: set[str] = set()
    for path in state.record_files(labs):
        record = state.load(path)
        if record is not None and record.owner_is_alive():
            alive.add(record.token)
        elif record is not None:
            removed += remove(record, labs)
            path.unlink(missing_ok=True)
        elif path.exists():
            path.unlink()
            removed.append(f"unreadable record {path}")
    removed += _remove_by_name(alive)
    removed += _remove_containers()
    return removed


def _remove_by_name(alive: set[str]) -> list[str]:
    """Remove namespaces and directories that bear our prefix and that no record mentions."""
    removed = []
    namespaces = sorted(NAMESPACE_FOLDER.glob(f"{state.NAME_PREFIX}*"))
    # A lab that has begun since the records were read: it wrote its own before it made anything.
    alive = alive | _living_in_memory()
    for path in namespaces:
        token = path.name.removeprefix(state.NAME_PREFIX).partition("-")[0]
        if token not in alive:
            remove_namespace(path.name)
            removed.append(f"namespace {path.name}")
    for path in sorted(state.MEMORY_ROOT.glob(f"{state.MEMORY_PREFIX}*")):
        if path.name.removeprefix(state.MEMORY_PREFIX) not in alive and _is_abandoned(path):
            remove_directory(path)
            removed.append(f"directory {path}")
    return removed


def _living_in_memory() -> set[str]:
    """Tokens of all labs on the machine whose harness is alive."""
    files = state.MEMORY_ROOT.glob(f"{state.MEMORY_PREFIX}*/{state.OWNER_FILE}")
    records = [state.load(path) for path in files]
    return {each.token for each in records if each is not None and each.owner_is_alive()}


def _is_abandoned(directory: Path) -> bool:
    """Whether nobody can still be about to write the record that belongs into a directory."""
    try:
        age_s = time.time() - directory.stat().st_mtime
    except FileNotFoundError:
        return False
    return directory.is_dir() and age_s > RECORD_TIMEOUT_S


def _remove_containers() -> list[str]:
    """Let the container lab remove its own, where there is an engine to ask."""
    try:
        from harness.orchestrate import containers
    except ImportError:
        return []
    return list(containers.remove_left_overs())
