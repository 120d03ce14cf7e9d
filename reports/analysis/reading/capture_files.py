"""Which files are meant, where each was captured, and how its bytes are had.

    captures/            a folder: its capture files, of a run folder those of its hosts
    'lan/*.pcap*'        a pattern
    pub='lan/a-*.gz'     a vantage point by name: all these files are one capture, in this order

Without a name a file's own is the vantage point's, without folder, suffix and number of rotation:
`pub.pcap`, `pub.pcap1` and `pub_00002_20260101120000.pcapng.gz` were all captured at `pub`.
"""

import glob
import gzip
import lzma
import re
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import pyarrow as pa

from windtunnel.harness.artifact.regular_file import open_regular, untrusted_folder
from windtunnel.harness.artifact.run_dir import RunDir

_COMPRESSED = {b"\x1f\x8b": "gz", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zst"}
_SUFFIXES = re.compile(r"(\.(pcap|pcapng|cap|dmp|dump)\d*)?(\.(gz|xz|zst))?$", re.IGNORECASE)
_IS_CAPTURE = re.compile(r"\.(pcap|pcapng|cap|dmp|dump)\d*(\.(gz|xz|zst))?$", re.IGNORECASE)
_ROTATION = re.compile(r"_\d{5}_\d{14}$")


class CapturePathError(ValueError):
    """No file can be meant by what was given; the text says by what."""


@dataclass(frozen=True)
class CaptureFile:
    """One file of a capture."""

    index: int
    path: str
    vantage_point: str
    length: int
    compression: str
    "gz, xz or zst; empty of a plain file."


def find_captures(given: list[str]) -> list[CaptureFile]:
    """The files meant by paths, patterns and folders, each of them once.

    Raises CapturePathError naming what cannot be found or read, and UnsafeFileError if a capture of
    a run folder is not a regular file.
    """
    named: dict[Path, str] = {}
    for text in given:
        name, paths = _meant_by(text)
        for path in paths:
            named.setdefault(path, name)
    points = _vantage_points(named)
    return [
        CaptureFile(index, str(path), points[path], path.stat().st_size, compression(path))
        for index, path in enumerate(named)
    ]


def _meant_by(text: str) -> tuple[str, list[Path]]:
    name, pattern = "", text
    if not Path(text).exists():
        before, mark, after = text.partition("=")
        if mark and before and "/" not in before:
            name, pattern = before, after
    if not pattern:
        raise CapturePathError(f"{text!r}: expected a path")
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
            raise CapturePathError(f"{folder}: no capture file in this folder")
    elif path.exists():
        found = [path]
    else:
        found = [Path(each) for each in glob.glob(pattern, recursive=True)]
        if not found:
            raise CapturePathError(f"{pattern}: no such file")
    files = [each for each in found if each.is_file()]
    if not files:
        raise CapturePathError(f"{pattern}: not a regular file")
    return name, sorted(files, key=_in_order)


def _in_order(path: Path) -> list[tuple[int, int, str]]:
    """So that a tenth file comes behind a second."""
    parts = re.split(r"(\d+)", str(path))
    return [(1, int(each), "") if each.isdigit() else (0, 0, each) for each in parts]


def _vantage_points(named: dict[Path, str]) -> dict[Path, str]:
    folders: dict[str, set[Path]] = {}
    for path in named:
        folders.setdefault(_stem(path), set()).add(path.parent)
    return {
        path: name
        or (_stem(path) if len(folders[_stem(path)]) == 1 else str(path.parent / _stem(path)))
        for path, name in named.items()
    }


def _stem(path: Path) -> str:
    bare = _SUFFIXES.sub("", path.name)
    return _ROTATION.sub("", bare) or path.name


def compression(path: Path) -> str:
    """How a file is compressed, by its first bytes; raises CapturePathError if it has none to read.

    An empty file is plain.
    """
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        raise CapturePathError(f"{path}: {error.strerror or error}") from error
    return next((kind for magic, kind in _COMPRESSED.items() if head.startswith(magic)), "")


class _InPieces:
    """A decompressing file that gives what it has before it says that its input is damaged."""

    PIECE_LENGTH = 1 << 16

    def __init__(self, file: Any) -> None:
        self._file = file

    def readinto(self, buffer: memoryview) -> int:
        piece: bytes = self._file.read(min(len(buffer), self.PIECE_LENGTH))
        buffer[: len(piece)] = piece
        return len(piece)

    def seek(self, offset: int) -> int:
        raise OSError(f"a compressed file cannot be read from its byte {offset} on")

    def close(self) -> None:
        self._file.close()


def open_capture(file: CaptureFile) -> FileIO | _InPieces:
    """The plain bytes of a capture, to be read forwards; may raise OSError."""
    if file.compression == "gz":
        return _InPieces(gzip.open(file.path, "rb"))
    if file.compression == "xz":
        return _InPieces(lzma.open(file.path, "rb"))
    if file.compression == "zst":
        return _InPieces(pa.CompressedInputStream(pa.OSFile(file.path, "rb"), "zstd"))
    return FileIO(file.path)
