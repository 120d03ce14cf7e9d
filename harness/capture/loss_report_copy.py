"""Copies a driver's loss report at the end of a run. The file is mapped from the beginning, so its
driver may have ended and removed it by then.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.regular_file import UnsafeFileError, map_bytes

LOSS_REPORT_FILE = "loss-report.dat"


class LossReportCopy:
    """The mapped loss report of a driver."""

    def __init__(self, directory: Path) -> None:
        """Map the loss report in a driver's directory. Without one, nothing will be copied."""
        self._bytes: NDArray[np.uint8] | None = None
        try:
            self._bytes = map_bytes(directory / LOSS_REPORT_FILE)
        except (OSError, UnsafeFileError):
            return

    def write(self, path: Path) -> None:
        """Write the report without the unused rest of the file."""
        if self._bytes is not None:
            used = np.flatnonzero(self._bytes)
            path.write_bytes(self._bytes[: used[-1] + 1 if used.size else 0].tobytes())
