"""The payload: a file with the bytes that publishers send as message content.

The default is a tar archive of the running Python's standard library. Its names are sorted and its
owners and times are omitted, so the archive depends only on the library. It is created once and
stored in `runs/.payload/`, as is a copy of any other file that a run sends. Run folders contain a
link to this copy, so later changes to the user's file do not affect them.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import stat
import sysconfig
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from windtunnel.harness.orchestrate.lab import LabError

SKIPPED_FOLDERS = frozenset({"__pycache__", "site-packages", "dist-packages"})
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Payload:
    """A payload file that is stored below the runs folder."""

    path: Path
    sha256: str
    length: int
    source: str
    """The path given by the user, or an empty string for the default payload."""


def _library_files(library: Path) -> dict[str, os.stat_result]:
    """Return the standard library's files, by their sorted paths below its folder."""
    found = {}
    for folder, folders, names in os.walk(library):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        below = os.path.relpath(folder, library)
        for name in names:
            if name.endswith(".py"):
                status = os.lstat(os.path.join(folder, name))
                if stat.S_ISREG(status.st_mode):
                    found[os.path.normpath(os.path.join(below, name))] = status
    return dict(sorted(found.items(), key=lambda each: each[0].split(os.sep)))


def _listing_digest(library: Path, files: Mapping[str, os.stat_result]) -> str:
    """Return a digest of the names, sizes and times of the standard library's files, without
    reading their contents.
    """
    lines = [f"{path} {status.st_size} {status.st_mtime_ns}\n" for path, status in files.items()]
    return hashlib.sha256(f"{library}{''.join(lines)}".encode()).hexdigest()[:16]


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o644
    return entry


def write_archive(library: Path, files: Iterable[str], target: Path) -> None:
    """Write the given files of a folder as a tar archive whose bytes depend only on their names and
    contents.
    """
    with tarfile.open(target, "w", format=tarfile.USTAR_FORMAT) as archive:
        for path in files:
            archive.add(library / path, arcname=path, filter=_plain)


def file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _make(target: Path, write: Callable[[Path], object]) -> None:
    """Let `write` write a file of the payload store at a temporary path, unless the file exists."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".unfinished-") as folder:
        unfinished = Path(folder) / "payload"
        try:
            write(unfinished)
        except OSError as error:
            # An error of writing has no path.
            if error.errno is not None and error.filename is None:
                error.filename = str(target)
            raise
        os.replace(unfinished, target)


def default_payload(store: Path, library: Path | None = None) -> Payload:
    """Return the default payload, a tar archive of Python's standard library. Creates the archive
    if it does not exist.
    """
    library = library or Path(sysconfig.get_path("stdlib"))
    files = _library_files(library)
    if not files:
        raise LabError(f"no Python source files in {library}: specify a file with --payload")
    digest = _listing_digest(library, files)
    target = store / f"stdlib-{platform.python_version()}-{digest}.tar"
    _make(target, lambda path: write_archive(library, files, path))
    return Payload(target, file_sha256(target), target.stat().st_size, source="")


def content_payload(store: Path, name: str, content: bytes) -> Payload:
    """Return a stored payload with the given content. Creates it if it does not exist."""
    sha256 = hashlib.sha256(content).hexdigest()
    target = store / f"{name}-{sha256[:16]}"
    _make(target, lambda path: path.write_bytes(content))
    return Payload(target, sha256, len(content), source="")


def file_payload(store: Path, source: Path) -> Payload:
    """Return a stored copy of the user's payload file. Creates the copy if it does not exist."""
    if not source.is_file():
        raise LabError(f"payload {source}: no such file")
    if source.stat().st_size == 0:
        raise LabError(f"payload {source}: expected at least one byte, found an empty file")
    sha256 = file_sha256(source)
    target = store / f"{source.name}-{sha256[:16]}"
    _make(target, lambda path: shutil.copyfile(source, path))
    return Payload(target, sha256, target.stat().st_size, source=str(source))
