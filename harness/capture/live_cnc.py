"""The mapped cnc.dat of a live driver, which may be somebody else's.

A driver that truncates the file takes the mapped pages away. `require_whole` finds that before they
are read. If the file is truncated while it is read, SIGBUS ends this process, and the harness finds
the same from that. Nothing else can be the reason: drivers allocate the whole file.
"""

from __future__ import annotations

import mmap
from pathlib import Path, PurePath

import numpy as np

from windtunnel.harness.artifact.regular_file import UnsafeFileError, folder_below, open_regular
from windtunnel.harness.dissect.driver_files.cnc_file import CncFile, CncFileError, read_cnc

CNC_FILE = "cnc.dat"


class LiveCnc:
    """The sections of a driver's cnc.dat, and the length that the file must keep."""

    def __init__(self, cnc: CncFile, memory: mmap.mmap) -> None:
        self.cnc = cnc
        self._memory = memory

    def require_whole(self) -> None:
        """Raise CncFileError if the file is shorter than when it was mapped."""
        found = self._memory.size()
        if found < len(self._memory):
            text = f"expected {len(self._memory)} bytes, found {found}: it was truncated"
            raise CncFileError(text)


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
            memory = _mapped(file.fileno())
    except UnsafeFileError:
        raise
    except OSError:
        return None
    if memory is None:
        return None
    cnc = read_cnc(np.frombuffer(memory, dtype=np.uint8))
    return None if cnc is None else LiveCnc(cnc, memory)


def _mapped(descriptor: int) -> mmap.mmap | None:
    """Map a file for reading. Returns None if it is empty."""
    try:
        return mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
    except ValueError:
        return None
