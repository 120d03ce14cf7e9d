"""Selects capture files by path, determines their vantage points, and decompresses them.

    captures/            all capture files of a folder or, if it is a run folder, of its hosts
    'lan/*.pcap*'        a pattern
    pub='lan/a-*.gz'     a named vantage point: these files form one capture, in this order

Without a name, the vantage point is the file name without folder, suffix and rotation number:
`pub.pcap`, `pub.pcap1` and `pub_00002_20260101120000.pcapng.gz` all belong to `pub`.
"""

import glob
import gzip
import re
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import pyarrow as pa

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.regular_file import open_regular, untrusted_folder
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.reports.analysis.reading.xz_reader import XzReader

_COMPRESSED = {b"\x1f\x8b": "gz", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zst"}
_SKIPPABLE = b"\x2a\x4d\x18"
"""Bytes 1 to 3 of a skippable frame of zstd, with which the files of `pzstd` begin."""
_SUFFIXES = re.compile(r"(\.(pcap|pcapng|cap|dmp|dump)\d*)?(\.(gz|xz|zst))?$", re.IGNORECASE)
_IS_CAPTURE = re.compile(r"\.(pcap|pcapng|cap|dmp|dump)\d*(\.(gz|xz|zst))?$", re.IGNORECASE)
_ROTATION = re.compile(r"_\d{5}_\d{14}$")


class CapturePathError(ValueError):
    """Raised if a path or pattern, which the message names, matches no readable capture."""


@dataclass(frozen=True)
class CaptureFile:
    """A capture file: its path, its vantage point and its compression."""

    index: int
    path: str
    vantage_point: str
    length: int
    compression: str
    "`gz`, `xz` or `zst`, or an empty string if the file is not compressed."


def find_captures(arguments: list[str]) -> list[CaptureFile]:
    """Return the capture files that paths, patterns and folders select, each file once.

    Raises CapturePathError naming the path that cannot be found or read, and UnsafeFileError if a
    capture of a run folder is not a regular file.
    """
    named: dict[Path, str] = {}
    for text in arguments:
        name, paths = _expand(text)
        files = [each for each in paths if each.is_file()]
        if not files:
            raise CapturePathError(
                f"{paths[0]}: expected a regular file; write what comes from a pipe to a file first"
            )
        for path in files:
            named.setdefault(path, name)
    points = _vantage_points(named)
    return [
        CaptureFile(index, str(path), points[path], path.stat().st_size, compression(path))
        for index, path in enumerate(named)
    ]


def skipped_captures(arguments: list[str]) -> list[str]:
    """Return a sentence for each path that the arguments select and that is no regular file, such
    as a FIFO or a link to a file that does not exist. Directories that match a pattern are not
    meant.
    """
    paths = dict.fromkeys(path for text in arguments for path in _expand(text)[1])
    return [
        f"{path}: skipped: expected a regular file"
        for path in paths
        if not path.is_file() and not path.is_dir()
    ]


def host_names(files: list[CaptureFile]) -> dict[str, str]:
    """Return the hosts of a run by address, or nothing if files are not captures of one run."""
    folders = {Path(each.path).parent for each in files}
    runs = [RunDir(each.parent) for each in folders]
    if len(runs) != 1 or runs[0].captures not in folders or not runs[0].case.is_file():
        return {}
    try:
        return {each.address: each.name for each in Case.read(runs[0].case).hosts}
    except (OSError, DocumentError):
        # A damaged run can be analysed as well, with the captured addresses.
        return {}


def _expand(text: str) -> tuple[str, list[Path]]:
    name, pattern = "", text
    if not Path(text).exists():
        before, mark, after = text.partition("=")
        if mark and before and "/" not in before:
            name, pattern = before, after
    if not pattern:
        raise CapturePathError(f"{text!r}: expected a path after NAME=")
    path = Path(pattern)
    if path.is_dir():
        run = RunDir(path)
        is_run = run.captures.is_dir()
        if is_run:
            untrusted_folder(path)
        folder = run.captures if is_run else path
        found = [each for each in folder.iterdir() if _IS_CAPTURE.search(each.name)]
        for each in found if is_run else []:
            open_regular(each).close()
        if not found:
            raise CapturePathError(
                f"{folder}: expected capture files (.pcap, .pcapng, ...) in this folder, found none"
            )
    elif path.exists():
        found = [path]
    else:
        found = [Path(each) for each in glob.glob(pattern, recursive=True)]
        if not found:
            raise CapturePathError(f"{pattern}: no such file")
    return name, sorted(found, key=_natural_order)


def _natural_order(path: Path) -> list[tuple[int, int, str]]:
    """Return a sort key that compares digits as numbers, so file 10 follows file 2."""
    parts = re.split(r"(\d+)", str(path))
    return [(1, int(each), "") if each.isdigit() else (0, 0, each) for each in parts]


def _vantage_points(named: dict[Path, str]) -> dict[Path, str]:
    folders: dict[str, set[Path]] = {}
    for path in named:
        folders.setdefault(_stem(path), set()).add(path.parent)
    return {
        path: unicode_text(
            name
            or (_stem(path) if len(folders[_stem(path)]) == 1 else str(path.parent / _stem(path)))
        )
        for path, name in named.items()
    }


def unicode_text(text: str) -> str:
    """Return a text with the bytes of file names that are not UTF-8 escaped, as tables need it."""
    return text.encode("utf-8", "backslashreplace").decode()


def _stem(path: Path) -> str:
    bare = _SUFFIXES.sub("", path.name)
    return _ROTATION.sub("", bare) or path.name


def compression(path: Path) -> str:
    """Return the compression of a file, detected from its first bytes, or "" for none.

    Raises CapturePathError if the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        raise CapturePathError(f"{path}: {error.strerror or error}") from error
    if head[1:4] == _SKIPPABLE and head[0] >> 4 == 5:
        return "zst"
    return next((kind for magic, kind in _COMPRESSED.items() if head.startswith(magic)), "")


class _PiecewiseReader:
    """A decompressing reader that returns all intact data before it reports damaged input."""

    PIECE_LENGTH = 1 << 16

    def __init__(self, file: Any) -> None:
        self._file = file

    def readinto(self, buffer: memoryview) -> int:
        piece: bytes = self._file.read(min(len(buffer), self.PIECE_LENGTH))
        buffer[: len(piece)] = piece
        return len(piece)

    def seek(self, offset: int) -> int:
        raise OSError(f"cannot seek to offset {offset} in a compressed file")

    def close(self) -> None:
        self._file.close()


def open_capture(file: CaptureFile) -> FileIO | _PiecewiseReader:
    """Open a capture for sequential reading, decompressing it if needed. Raises OSError if the file
    cannot be opened.
    """
    if file.compression == "gz":
        return _PiecewiseReader(gzip.open(file.path, "rb"))
    if file.compression == "xz":
        return _PiecewiseReader(XzReader(Path(file.path)))
    if file.compression == "zst":
        return _PiecewiseReader(pa.CompressedInputStream(pa.OSFile(file.path, "rb"), "zstd"))
    return FileIO(file.path)
