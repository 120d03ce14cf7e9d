"""The folder of one worker: copies of the undamaged files, and traps beside them.

work/       copies of the base folders: damaged before each trial, restored after it
out/        results that a command line requests
outside/    a canary file, to which some links lead; nothing may be written or opened here
cwd/, tmp/  the current and the temporary directory, which must stay empty
"""

import ctypes
import os
import shutil
from pathlib import Path

from windtunnel.harness.fuzz.finding import Violation
from windtunnel.harness.fuzz.tools.trial import BaseFiles, Trial, place, write_sparse

CANARY = b"canary: not to be read or changed through a link\n"
IN_OPEN = 0x20
EMPTY = ("cwd", "tmp")
_Facts = tuple[int, int, int, int]


class OpenWatch:
    """Detects that a file was opened, with inotify."""

    def __init__(self, path: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        if libc.inotify_add_watch(self._descriptor, os.fsencode(path), IN_OPEN) < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch", str(path))

    def was_opened(self) -> bool:
        """Return whether the file was opened since the last call."""
        try:
            return bool(os.read(self._descriptor, 4_096))
        except BlockingIOError:
            return False


class Workshop:
    """The folder of one worker. An undamaged file is copied only if it is missing or changed."""

    def __init__(self, folder: Path, base: BaseFiles) -> None:
        self.folder, self.base = folder, base
        shutil.rmtree(folder, ignore_errors=True)
        self.work, self.out = folder / "work", folder / "out"
        self.canary = folder / "outside" / "canary"
        for name in ("outside", "out", *EMPTY):
            (folder / name).mkdir(parents=True)
        self.canary.write_bytes(CANARY)
        if base.names:
            shutil.copytree(base.folder, self.work)
        self._watch = OpenWatch(self.canary)
        self._before: dict[str, _Facts] = {}

    def prepare(self, trial: Trial) -> list[str]:
        """Put the damaged files in place. Returns the command line of the trial."""
        for name, damaged in trial.files.items():
            path = self.work / name
            _remove(path)
            place(path, damaged, self.canary)
        self._before = self._facts(trial)
        self._watch.was_opened()
        return trial.words(self.work, self.out)

    def check(self, trial: Trial) -> None:
        """Raise Violation if something was written or opened that the command may not."""
        program = trial.program
        if self._watch.was_opened() and not program.may_follow:
            raise Violation("a link out of the folder was followed: its target was opened")
        found = sorted(path.name for path in self.canary.parent.iterdir())
        if found != ["canary"] or self.canary.read_bytes() != CANARY:
            raise Violation(f"a file outside of the folder was written: {found}")
        for name in EMPTY:
            left = sorted(path.name for path in (self.folder / name).iterdir())
            if left:
                raise Violation(f"files were left in the {name} folder: {left[:5]}")
        for name in self._changed(trial):
            if not program.may_write(name.partition("/")[2]):
                raise Violation(f"the command may not write {name}")
        if program.is_archive_tool and not program.may_write("0-0.rec"):
            self._check_segments(trial)

    def _check_segments(self, trial: Trial) -> None:
        """Compare the contents of segment files: writes to mapped files change no times."""
        for name in self.base.read_by(trial.program):
            if name.endswith(".rec") and name not in trial.files:
                path = self.work / name
                if not path.is_file() or path.read_bytes() != self.base.content(name):
                    raise Violation(f"the command may not write {name}")

    def restore(self, trial: Trial) -> None:
        """Undo the damage and all changes that the command made."""
        changed = {*self._changed(trial), *trial.files}
        if trial.program.is_archive_tool and trial.program.writes:
            changed |= {name for name in self.base.names if name.startswith("archive/")}
        for name in changed:
            _remove(self.work / name)
        for name in sorted(changed.intersection(self.base.names)):
            (self.work / name).parent.mkdir(parents=True, exist_ok=True)
            write_sparse(self.work / name, self.base.content(name))
        for name in ("out", *EMPTY):
            for path in (self.folder / name).iterdir():
                _remove(path)

    def _changed(self, trial: Trial) -> list[str]:
        after = self._facts(trial)
        names = after.keys() | self._before.keys()
        return sorted(name for name in names if after.get(name) != self._before.get(name))

    def _facts(self, trial: Trial) -> dict[str, _Facts]:
        found: dict[str, _Facts] = {}
        folders = trial.program.folders()
        while folders:
            folder = folders.pop()
            for entry in os.scandir(self.work / folder):
                name = f"{folder}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    folders.append(name)
                facts = entry.stat(follow_symlinks=False)
                is_folder = entry.is_dir(follow_symlinks=False)
                found[name] = (
                    facts.st_mode, facts.st_ino, 0 if is_folder else facts.st_size,
                    0 if is_folder else facts.st_mtime_ns,
                )  # fmt: skip
        return found


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
