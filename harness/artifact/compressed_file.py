"""Captures compressed with gzip, which `windtunnel run --compress` writes for passed runs.

    a.pcap      mapped
    a.pcap.gz   decompressed into an unnamed temporary file, which is mapped

Compressed files are untrusted input like all files of a run folder. A short file may decompress to
a very long one, so the length is limited.
"""

import gzip
import os
import shutil
import tempfile
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.regular_file import map_bytes, open_regular
from windtunnel.harness.artifact.run_dir import COMPRESSED_SUFFIX

PLAIN_BYTES_MAX = 4 << 30
"""Maximum uncompressed length of a file: several times that of the longest captures."""

SPARSE_SHARE = 8
"""A file is sparse if its length is more than this many times what it takes on the disk."""

LEVEL = 1
"""The fastest level. Level 6 takes four times as long, and its files are a tenth smaller."""

_MAGIC = b"\x1f\x8b"
_PIECE_BYTES = 1 << 20
_BLOCK_LENGTH = 512
"""Unit of a file's allocated blocks in stat(2)."""


class CompressionError(ValueError):
    """Raised for a file that cannot be decompressed. The message gives the reason."""


def map_plain_bytes(path: Path, max_bytes: int = PLAIN_BYTES_MAX) -> NDArray[np.uint8]:
    """Map a file's bytes into memory. If the file is compressed with gzip, its decompressed bytes
    are mapped.

    A sparse file has the same limit as a compressed one. Raises the same errors as `open_regular`,
    and CompressionError.
    """
    with open_regular(path) as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            _require_not_sparse(os.fstat(file.fileno()), max_bytes)
            return map_bytes(path)
        file.seek(0)
        with gzip.GzipFile(fileobj=file) as packed, tempfile.TemporaryFile() as plain:
            length = 0
            try:
                while piece := packed.read(_PIECE_BYTES):
                    length += len(piece)
                    if length > max_bytes:
                        raise CompressionError(
                            f"expected at most {max_bytes} bytes after decompression, found more"
                        )
                    plain.write(piece)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise CompressionError(f"cannot be decompressed: {error}") from error
            plain.flush()
            if length == 0:
                return np.zeros(0, dtype=np.uint8)
            return np.asarray(np.memmap(plain, dtype=np.uint8, mode="r"))


def _require_not_sparse(status: os.stat_result, max_bytes: int) -> None:
    is_sparse = status.st_blocks * _BLOCK_LENGTH < status.st_size // SPARSE_SHARE
    if status.st_size > max_bytes and is_sparse:
        raise CompressionError(
            f"expected at most {max_bytes} bytes in a sparse file, found {status.st_size}"
        )


def compress_file(path: Path) -> Path:
    """Replace a file with a gzip file that has the additional suffix `.gz`, and return the new
    path.

    The compressed file is read back before the plain one is removed. A file that is longer than
    `PLAIN_BYTES_MAX` stays as it is, and its path is returned.
    """
    with open_regular(path) as plain:
        if os.fstat(plain.fileno()).st_size > PLAIN_BYTES_MAX:
            return path
        target = path.with_name(path.name + COMPRESSED_SUFFIX)
        unfinished = path.with_name(f".{target.name}.new")
        try:
            with unfinished.open("xb") as file:
                # Without a name and a time, equal captures are compressed to equal files.
                with gzip.GzipFile("", "wb", LEVEL, fileobj=file, mtime=0) as packed:
                    shutil.copyfileobj(plain, packed, _PIECE_BYTES)
                file.flush()
                os.fsync(file.fileno())
            _require_equal(path, unfinished)
            os.replace(unfinished, target)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
    path.unlink()
    return target


def _require_equal(path: Path, compressed: Path) -> None:
    with open_regular(path) as plain, gzip.open(compressed) as packed:
        while piece := plain.read(_PIECE_BYTES):
            if packed.read(len(piece)) != piece:
                raise OSError(
                    f"{compressed}: expected the contents of {path.name}, found other bytes"
                )
        if packed.read(1):
            raise OSError(f"{compressed}: expected the contents of {path.name}, found more bytes")
