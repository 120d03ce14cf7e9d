"""One trial: a command, and the damaged files that it is given.

The seed, the epoch and the number of a trial determine it, given the undamaged files. A finding
contains all files that the command could read, so that it can be replayed without them:

    ["command", 0, name]      the name of the command
    ["file", 0, path NUL compressed content]      also "link", "fifo" and "folder"

Paths and commands of a finding are data: a path must be a plain relative one, and the name must be
that of a known command.
"""

import os
import random
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.fuzz.finding import Input
from windtunnel.harness.fuzz.tools.base_files import FOLDERS
from windtunnel.harness.fuzz.tools.damage import (
    ABSENT,
    FIFO,
    FILE,
    FOLDER,
    LINK,
    LINKS,
    Damaged,
    damage,
)
from windtunnel.harness.fuzz.tools.programs import BY_NAME, PROGRAMS, Program

COMMAND = "command"
CONTENT_MAX = 256 << 20
"""Maximum length of a file in a finding."""
BLOCK = 4_096
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Trial:
    """A command, and what takes the place of some files, by their paths below the base folder."""

    program: Program
    files: dict[str, Damaged] = field(default_factory=dict)

    def words(self, work: Path, out: Path) -> list[str]:
        """Return the command line for copies of the folders in `work`."""
        places = {name: str(work / name) for name in FOLDERS} | {"out": str(out)}
        if self.program.names_file:
            places["file"] = str(work / next(iter(self.files)))
        return [word.format(**places) for word in self.program.words]


class BaseFiles:
    """The undamaged files of an epoch, by path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        paths = [path for path in folder.rglob("*") if path.is_file()]
        self.names = sorted(str(path.relative_to(folder)) for path in paths)
        self._contents: dict[str, bytes] = {}

    def content(self, name: str) -> bytes:
        """Return the content of a file."""
        if name not in self._contents:
            self._contents[name] = (self.folder / name).read_bytes()
        return self._contents[name]

    def read_by(self, program: Program) -> list[str]:
        """Return the paths of the files of a command that may be damaged."""
        prefix = program.folder + "/"
        found = (name for name in self.names if name.startswith(prefix))
        return [name for name in found if program.reads(name.removeprefix(prefix))]


def make_trial(base: BaseFiles, seed: int, epoch: int, number: int) -> Trial:
    """Return the trial with this number."""
    chance = random.Random(f"{seed}/{epoch}/{number}")
    (program,) = chance.choices(PROGRAMS, [each.weight for each in PROGRAMS])
    names = base.read_by(program)
    count = 1 if program.names_file else min(len(names), chance.choice((1, 1, 1, 1, 1, 2, 3)))
    chosen = chance.sample(names, count)
    return Trial(program, {name: damage(chance, name, base.content(name)) for name in chosen})


def undamaged(program: Program, base: BaseFiles) -> Trial:
    """Return a trial without damage, to which the command must always react in the same way."""
    name = base.read_by(program)[0]
    return Trial(program, {name: Damaged(FILE, base.content(name))})


def place(path: Path, damaged: Damaged, canary: Path) -> None:
    """Put a damaged file, or what replaces it, at a path that does not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if damaged.kind == FILE:
        write_sparse(path, damaged.content)
    elif damaged.kind == FIFO:
        os.mkfifo(path)
    elif damaged.kind == FOLDER:
        path.mkdir()
    elif damaged.kind == LINK:
        targets = dict(zip(LINKS, (canary, canary.with_name("new"), path), strict=True))
        path.symlink_to(targets[damaged.content.decode()])
    else:
        assert damaged.kind == ABSENT


def write_sparse(path: Path, content: bytes) -> None:
    """Write a file whose blocks of zeros take no memory: most of a driver's files is zeros."""
    with path.open("wb") as file:
        file.truncate(len(content))
        words = np.frombuffer(content, np.uint64, len(content) // BLOCK * (BLOCK // 8))
        is_used = words.reshape(-1, BLOCK // 8).any(axis=1)
        edges = np.flatnonzero(np.diff(is_used, prepend=False, append=False)) * BLOCK
        rest = len(words) * 8
        for start, end in (*edges.reshape(-1, 2).tolist(), (rest, len(content))):
            os.pwrite(file.fileno(), content[start:end], start)


def packed(trial: Trial, base: BaseFiles) -> list[Input]:
    """Return a trial, with all files of its folders, as the inputs of a finding."""
    made = [Input(COMMAND, 0, trial.program.name.encode())]
    prefixes = tuple(f"{name}/" for name in trial.program.folders())
    for name in base.names:
        if name.startswith(prefixes):
            damaged = trial.files.get(name, Damaged(FILE, base.content(name)))
            if damaged.kind != ABSENT:
                content = name.encode() + b"\0" + zlib.compress(damaged.content, 9)
                made.append(Input(damaged.kind, int(name in trial.files), content))
    return made


def unpacked(inputs: list[Input]) -> Trial:
    """Return the trial in a finding, with all its files. Raises DocumentError if it is invalid."""
    name = inputs[0].content.decode(errors="replace") if inputs else ""
    program = BY_NAME.get(name)
    if program is None or inputs[0].kind != COMMAND:
        raise DocumentError(f"inputs[0]: expected the name of a command, found {name!r}")
    # A command that names its file takes the first one: the damaged file.
    ordered = sorted(enumerate(inputs[1:], 1), key=lambda pair: -pair[1].target)
    return Trial(program, dict(_unpacked_file(index, item) for index, item in ordered))


def _unpacked_file(index: int, item: Input) -> tuple[str, Damaged]:
    raw, _, content = item.content.partition(b"\0")
    name = raw.decode(errors="replace")
    parts = PurePosixPath(name).parts
    is_plain = len(parts) > 1 and all(_PART.fullmatch(part) for part in parts)
    if item.kind not in (FILE, LINK, FIFO, FOLDER) or not is_plain or parts[0] not in FOLDERS:
        raise DocumentError(
            f"inputs[{index}]: expected a file, link, fifo or folder below {', '.join(FOLDERS)}, "
            f"found {item.kind!r} {name!r}"
        )
    try:
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(content, CONTENT_MAX)
    except zlib.error as error:
        raise DocumentError(f"inputs[{index}]: expected compressed content: {error}") from error
    if not unpacker.eof or (item.kind == LINK and plain.decode(errors="replace") not in LINKS):
        raise DocumentError(
            f"inputs[{index}]: expected compressed content of at most {CONTENT_MAX} bytes, or the "
            f"name of a link ({', '.join(LINKS)})"
        )
    return name, Damaged(item.kind, plain)
