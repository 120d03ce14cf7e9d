"""Files of raw records: packed little-endian structs, no header, one dtype a file.

Absence is not an exception here: a missing file reads as None, so that a judge can name it. A file
that ends inside a record (its writer was killed) reads as its whole records; `has_torn_tail` tells.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.regular_file import open_regular, size_of

Records = NDArray[Any]


def write_records(path: Path, records: Records) -> None:
    """Write all records as one new file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(np.ascontiguousarray(records).tobytes())


def append_records(path: Path, records: Records) -> None:
    """Add records to the end of a file, creating it if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(np.ascontiguousarray(records).tobytes())


def read_records(path: Path, dtype: np.dtype[Any]) -> Records | None:
    """All whole records of a file, or None when there is no such file.

    Raises UnsafeFileError for anything but a regular file.
    """
    try:
        with open_regular(path) as file:
            size_bytes = os.fstat(file.fileno()).st_size
            return np.fromfile(file, dtype=dtype, count=size_bytes // dtype.itemsize)
    except (FileNotFoundError, NotADirectoryError):
        return None


def has_torn_tail(path: Path, dtype: np.dtype[Any]) -> bool:
    """Whether the file ends inside a record."""
    return size_of(path) % dtype.itemsize != 0
