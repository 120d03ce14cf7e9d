"""What a lab is about to change on the machine, written down before it is changed.

    runs/.lab/<token>.json                  for people, and for `clean` in this checkout
    /dev/shm/windtunnel-<token>/owner.json  the same record, for `clean` anywhere on the machine

A record whose owner is dead is a left-over. An owner is a process id together with its start time
and the boot it belongs to, since ids are used again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

SCHEMA = "windtunnel-lab/1"
MEMORY_ROOT = Path("/dev/shm")
MEMORY_PREFIX = "windtunnel-"
OWNER_FILE = "owner.json"
NAME_PREFIX = "wt-"
"""Every namespace of ours starts so; nothing else on a machine should."""

_START_TIME_FIELD = 19
"""Index of the start time among the fields of /proc/<pid>/stat after the command's name."""


def _started_ticks(pid: int) -> int:
    """Return when a process started, in clock ticks since boot; 0 if there is no such process."""
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


@dataclass(frozen=True)
class LabState:
    """Everything that one lab may leave on the machine."""

    token: str
    run_id: str
    kind: str
    """The fidelity: `netns`, `compose` or `sim`."""
    namespaces: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    """Removed with all their contents; each is below `MEMORY_ROOT`."""
    pid: int = field(default_factory=os.getpid)
    started_ticks: int = field(default_factory=lambda: _started_ticks(os.getpid()))
    boot_id: str = field(default_factory=_boot_id)

    def owner_is_alive(self) -> bool:
        if self.boot_id != _boot_id():
            return False
        return self.started_ticks != 0 and _started_ticks(self.pid) == self.started_ticks

    def memory_directory(self) -> Path:
        return MEMORY_ROOT / f"{MEMORY_PREFIX}{self.token}"

    def write(self, labs: Path) -> Path:
        """Write both records and return the path of the one in the folder of labs."""
        text = json.dumps({"schema": SCHEMA, **asdict(self)}, indent=2) + "\n"
        labs.mkdir(parents=True, exist_ok=True)
        path = labs / f"{self.token}.json"
        _write_whole(path, text)
        memory = self.memory_directory()
        memory.mkdir(mode=0o755, exist_ok=True)
        _write_whole(memory / OWNER_FILE, text)
        return path


def _write_whole(path: Path, text: str) -> None:
    """Write a file so that nobody ever reads a part of it."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


def load(path: Path) -> LabState | None:
    """Read a record, or return None if the file is not a whole record of ours."""
    try:
        document = json.loads(path.read_text())
        if document.pop("schema") != SCHEMA:
            return None
        for name in ("namespaces", "directories"):
            document[name] = tuple(document[name])
        return LabState(**document)
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None


def record_files(labs: Path) -> Iterator[Path]:
    """Yield the record files of this checkout, then those that any harness left in memory."""
    yield from sorted(labs.glob("*.json"))
    yield from sorted(MEMORY_ROOT.glob(f"{MEMORY_PREFIX}*/{OWNER_FILE}"))
