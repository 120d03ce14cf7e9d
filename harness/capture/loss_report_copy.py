"""Copies a driver's loss report at the end of a run. The file is mapped from the beginning, so its
driver may have ended and removed it by then.
"""

from __future__ import annotations

from pathlib import Path, PurePath

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.regular_file import folder_below, map_bytes

LOSS_REPORT_FILE = "loss-report.dat"
COPIED_BYTES_MAX = 16 << 20
"""Maximum length of the copy, 16 times the default length of the file."""


class LossReportCopy:
    """The mapped loss report of a driver."""

    def __init__(self, directory: Path) -> None:
        """Map the loss report in a driver's directory. Without one, nothing will be copied."""
        self._bytes: NDArray[np.uint8] | None = None
        try:
            with folder_below(directory.parent, PurePath(directory.name)) as folder:
                self._bytes = map_bytes(folder / LOSS_REPORT_FILE)[:COPIED_BYTES_MAX]
        except OSError:
            return

    def write(self, path: Path) -> None:
        """Write the report without the unused rest of the file."""
        if self._bytes is not None:
            used = np.flatnonzero(self._bytes)
            path.write_bytes(self._bytes[: used[-1] + 1 if used.size else 0].tobytes())
