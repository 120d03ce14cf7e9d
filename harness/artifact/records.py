"""Files of raw records: packed little-endian structs of one dtype, without a file header.

Reading a missing file returns None instead of raising an exception, so the judge can name the file.
If a file ends inside a record because its writer was killed, its complete records are read; see
`has_torn_tail`.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.regular_file import UnsafeFileError, open_regular, size_of

Records = NDArray[Any]
RECORDS_BYTES_MAX = 1 << 30
"""Maximum length of a file that is read into memory, several times that of the longest ones. A
sparse file of any length takes a few bytes in an archive of a run folder."""


def write_records(path: Path, records: Records) -> None:
    """Write all records to a new file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(np.ascontiguousarray(records).tobytes())


def append_records(path: Path, records: Records) -> None:
    """Append records to a file, creating it if necessary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(np.ascontiguousarray(records).tobytes())


def read_records(
    path: Path, dtype: np.dtype[Any], max_bytes: int = RECORDS_BYTES_MAX
) -> Records | None:
    """Read all complete records of a file. Returns None if the file does not exist.

    Raises UnsafeFileError if it is not a regular file, or too long.
    """
    try:
        with open_regular(path) as file:
            size_bytes = os.fstat(file.fileno()).st_size
            if size_bytes > max_bytes:
                text = f"expected at most {max_bytes} bytes, found {size_bytes}"
                raise UnsafeFileError(path, text)
            return np.fromfile(file, dtype=dtype, count=size_bytes // dtype.itemsize)
    except (FileNotFoundError, NotADirectoryError):
        return None


def has_torn_tail(path: Path, dtype: np.dtype[Any]) -> bool:
    """Return whether the file ends with an incomplete record."""
    return size_of(path) % dtype.itemsize != 0
