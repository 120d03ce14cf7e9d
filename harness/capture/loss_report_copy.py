"""Copies a driver's loss report at the end of a run. The file is opened at the beginning, so its
driver may have ended and removed it by then. It is not mapped, because its driver may truncate it.
"""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import BinaryIO

from windtunnel.harness.artifact.regular_file import folder_below, open_regular

LOSS_REPORT_FILE = "loss-report.dat"
COPIED_BYTES_MAX = 16 << 20
"""Maximum length of the copy, 16 times the default length of the file."""


class LossReportCopy:
    """The open loss report of a driver."""

    def __init__(self, directory: Path) -> None:
        """Open the loss report in a driver's directory. Without one, nothing will be copied."""
        self._file: BinaryIO | None = None
        try:
            with folder_below(directory.parent, PurePath(directory.name)) as folder:
                self._file = open_regular(folder / LOSS_REPORT_FILE)
        except OSError:
            return

    def write(self, path: Path) -> None:
        """Write the report without the unused rest of the file, and close it."""
        if self._file is not None:
            with self._file as file:
                path.write_bytes(file.read(COPIED_BYTES_MAX).rstrip(b"\0"))
