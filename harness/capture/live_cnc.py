"""The mapped cnc.dat of a live driver, which is not trusted.

A driver that truncates the file takes the mapped pages away. `require_whole` finds that before they
are read. If the file is truncated while it is read, SIGBUS ends this process, and the harness finds
the same from that. A full file system cannot cause this: by default, drivers allocate the whole
file.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePath

from windtunnel.harness.artifact.regular_file import (
    UnsafeFileError,
    folder_below,
    map_open,
    open_regular,
)
from windtunnel.harness.dissect.driver_files.cnc_file import CncFile, CncFileError, read_cnc

CNC_FILE = "cnc.dat"


class LiveCnc:
    """The sections of a driver's cnc.dat, and the length that the file must keep."""

    def __init__(self, cnc: CncFile, descriptor: int, length: int) -> None:
        """`descriptor` is that of the open file. It remains open, since the driver may remove the
        file.
        """
        self.cnc = cnc
        self._descriptor = descriptor
        self._length = length

    def require_whole(self) -> None:
        """Raise CncFileError if the file is shorter than when it was mapped."""
        found = os.fstat(self._descriptor).st_size
        if found < self._length:
            raise CncFileError(f"expected {self._length} bytes, found {found}: it was truncated")


def map_live(directory: Path) -> LiveCnc | None:
    """Map the cnc.dat in a driver's directory. Returns None if it is missing or not initialized
    yet.

    No link below the directory of all drivers is followed. Raises UnsafeFileError for one, and
    CncFileError if the header is invalid.
    """
    try:
        with (
            folder_below(directory.parent, PurePath(directory.name)) as folder,
            open_regular(folder / CNC_FILE) as file,
        ):
            content = map_open(file)
            cnc = read_cnc(content)
            return None if cnc is None else LiveCnc(cnc, os.dup(file.fileno()), len(content))
    except (UnsafeFileError, CncFileError):
        raise
    except (OSError, ValueError):
        # The file may have been emptied between two looks at its length.
        return None
