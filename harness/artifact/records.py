"""Files of raw records: packed little-endian structs, no header, one dtype per file.

A missing file is no exception: it reads as None, so that the judge can name it. A file that ends
inside a record (its writer was killed) reads as its complete records; see `has_torn_tail`.
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
    """Append records to a file, creating it if necessary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(np.ascontiguousarray(records).tobytes())


def read_records(path: Path, dtype: np.dtype[Any]) -> Records | None:
    """Return all complete records of a file, or None if it does not exist.

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
