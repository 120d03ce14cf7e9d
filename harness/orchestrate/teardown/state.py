"""The record of what a lab changes on the machine, written before any change.

    runs/.lab/<token>.json                  for users, and for `clean` in this checkout
    /dev/shm/windtunnel-<token>/owner.json  a copy, for `clean` in other checkouts on the machine

A record whose owner is dead identifies leftovers. An owner is a process id with its start time and
the boot id, because process ids are reused.

Any user of the machine can create files in /dev/shm. A record is therefore only read if it is a
regular file in a real directory, and both are owned by this process's effective user. All fields
are validated.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from windtunnel.harness.orchestrate.lab import LabError

SCHEMA = "windtunnel-lab/1"
RECORDS = ".lab"
"""Name of the folder with the records of labs, below the folder of all runs."""
MEMORY_ROOT = Path("/dev/shm")
MEMORY_PREFIX = "windtunnel-"
OWNER_FILE = "owner.json"
NAME_PREFIX = "wt-"
"""Name prefix of all namespaces, networks and containers of a lab."""

RECORD_LENGTH_MAX = 64 << 10
NAMES_MAX = 64
"""Maximum number of namespaces or directories in a record. A lab has at most nine of each."""
PID_MAX = 1 << 22
"""The largest process id that Linux can be configured to assign."""

_TOKEN = r"[a-z0-9]{1,32}"
_PLACE = r"[a-z0-9-]{1,64}"
_RUN_ID = r"[^\x00-\x1f]{1,4096}"
_KIND = r"netns|compose|sim"
_BOOT_ID = r"[A-Za-z0-9-]{1,64}"

_START_TIME_FIELD = 19
"""Index of the start time among the fields of /proc/<pid>/stat after the command's name."""


def started_ticks_of(pid: int) -> int:
    """Return a process's start time in clock ticks since boot, or 0 if it does not exist."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    fields = text.rpartition(")")[2].split()
    if fields[0] in ("Z", "X"):
        return 0
    return int(fields[_START_TIME_FIELD])


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class RecordError(Exception):
    """Raised if a file is not a lab's record. The message states what was expected and what was
    found.
    """


class ForeignRecordError(RecordError):
    """Raised if a record file cannot have been written by a harness of this user."""


@dataclass(frozen=True)
class LabState:
    """The record of a lab: everything that it may leave on the machine, and who owns it."""

    token: str
    run_id: str
    kind: str
    """The fidelity of the lab: `netns`, `compose` or `sim`."""
    namespaces: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    """Directories below `MEMORY_ROOT`, which are removed together with their contents."""
    pid: int = field(default_factory=os.getpid)
    started_ticks: int = field(default_factory=lambda: started_ticks_of(os.getpid()))
    boot_id: str = field(default_factory=_boot_id)

    def owner_is_alive(self) -> bool:
        if self.boot_id != _boot_id():
            return False
        return self.started_ticks != 0 and started_ticks_of(self.pid) == self.started_ticks

    def memory_directory(self) -> Path:
        return MEMORY_ROOT / f"{MEMORY_PREFIX}{self.token}"

    def write(self, labs: Path) -> Path:
        """Write the record of a lab to the runs folder and to /dev/shm. Returns the path of the
        file in the runs folder.

        Creates the in-memory directory. Raises LabError if its path already exists.
        """
        text = json.dumps({"schema": SCHEMA, **asdict(self)}, indent=2) + "\n"
        labs.mkdir(parents=True, exist_ok=True)
        if labs.is_symlink():
            raise LabError(f"{labs}: expected a directory, found a link: remove it")
        path = labs / f"{self.token}.json"
        _write_atomically(path, text)
        memory = self.memory_directory()
        try:
            memory.mkdir(mode=0o700)
        except FileExistsError as error:
            raise LabError(
                f"{memory}: a file or directory with this name already exists: run `windtunnel "
                f"clean`, which removes it if a run of this user left it behind"
            ) from error
        _write_atomically(memory / OWNER_FILE, text)
        return path


def _write_atomically(path: Path, text: str) -> None:
    """Write a file atomically, by renaming a temporary file that only this user can access."""
    handle, fresh = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise


def load(path: Path) -> LabState | None:
    """Read the record in a file. Returns None if the file is not a record of this user."""
    try:
        return read(path)
    except (FileNotFoundError, RecordError):
        return None


def read(path: Path) -> LabState:
    """Read and validate the record in a file.

    Raises FileNotFoundError, ForeignRecordError if this user cannot have written the file, or
    RecordError if its contents are not a record or are the record of another lab.
    """
    try:
        document = json.loads(_read_own(path))
    except (ValueError, RecursionError) as error:
        raise RecordError(f"expected JSON: {error}") from error
    schema = document.pop("schema", None) if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise RecordError(f"expected an object with the schema {SCHEMA}, found something else")
    record = parse(document)
    own = record.memory_directory()
    if (path.parent, path.name) != (own, OWNER_FILE) and path.stem != record.token:
        raise RecordError(
            f"expected the record of the lab named in its path, found that of lab {record.token}"
        )
    return record


def _read_own(path: Path) -> bytes:
    """Read a small regular file. The current user must own both the file and its directory.

    Neither may be a symbolic link.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        directory = os.open(path.parent, flags | os.O_DIRECTORY)
        try:
            _require_own(os.fstat(directory), path.parent)
            file = os.open(path.name, flags, dir_fd=directory)
        finally:
            os.close(directory)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ForeignRecordError(f"cannot be opened as a regular file: {error.strerror}") from error
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise ForeignRecordError("expected a regular file, found another kind of file")
        _require_own(status, path)
        contents = os.read(file, RECORD_LENGTH_MAX + 1)
    finally:
        os.close(file)
    if len(contents) > RECORD_LENGTH_MAX:
        raise RecordError(f"expected at most {RECORD_LENGTH_MAX} bytes, found more")
    return contents


def _require_own(status: os.stat_result, path: Path) -> None:
    user = os.geteuid()
    if status.st_uid != user:
        found = f"expected {path} to belong to user {user}, found user {status.st_uid}"
        raise ForeignRecordError(found)


def parse(document: object) -> LabState:
    """Convert a decoded JSON document to a lab's record. Raises RecordError if the document is
    invalid.
    """
    names = {each.name for each in fields(LabState)}
    if not isinstance(document, dict) or document.keys() != names:
        raise RecordError(f"expected an object with the fields {', '.join(sorted(names))}")
    token = _text(document, "token", _TOKEN)
    memory = re.escape(f"{MEMORY_ROOT}/{MEMORY_PREFIX}")
    return LabState(
        token=token,
        run_id=_text(document, "run_id", _RUN_ID),
        kind=_text(document, "kind", _KIND),
        namespaces=_texts(document, "namespaces", f"{NAME_PREFIX}{token}-{_PLACE}"),
        directories=_texts(document, "directories", f"{memory}{_PLACE}"),
        pid=_integer(document, "pid", 1, PID_MAX),
        started_ticks=_integer(document, "started_ticks", 0, (1 << 63) - 1),
        boot_id=_text(document, "boot_id", _BOOT_ID),
    )


def _text(document: dict[str, Any], name: str, pattern: str) -> str:
    value = document[name]
    if not isinstance(value, str) or not re.fullmatch(pattern, value):
        raise RecordError(f"{name}: expected a string that matches {pattern}")
    return value


def _texts(document: dict[str, Any], name: str, pattern: str) -> tuple[str, ...]:
    values = document[name]
    if not isinstance(values, list) or len(values) > NAMES_MAX:
        raise RecordError(f"{name}: expected a list of at most {NAMES_MAX} strings")
    return tuple(_text({name: each}, name, pattern) for each in values)


def _integer(document: dict[str, Any], name: str, least: int, most: int) -> int:
    value = document[name]
    if type(value) is not int or not least <= value <= most:
        raise RecordError(f"{name}: expected an integer from {least} to {most}")
    return value


def is_own_directory(path: Path) -> bool:
    """Return whether a path is a directory owned by this user, and not a link."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def memory_directories() -> list[Path]:
    """Return the paths of all users' lab directories in /dev/shm, recognized by their names."""
    return sorted(MEMORY_ROOT.glob(f"{MEMORY_PREFIX}*"))


def memory_records() -> list[Path]:
    """Return the paths of the records of this user's labs in /dev/shm."""
    return [each / OWNER_FILE for each in memory_directories() if is_own_directory(each)]


def record_files(labs: Path) -> Iterator[Path]:
    """Yield the paths of lab records: first those of this checkout, then the copies in /dev/shm,
    which may come from other checkouts.
    """
    yield from sorted(labs.glob("*.json"))
    yield from (path for path in memory_records() if os.path.lexists(path))
