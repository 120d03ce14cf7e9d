"""Determines whether an exception in the simulator counts as a failure of the driver or client, or
of the harness.

A failed assertion in a compiled kernel leaves no such traceback, so it counts as a defect of the
harness until it has been investigated.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from windtunnel import driver

_DRIVER = Path(driver.__file__).resolve().parent


def is_drivers(error: BaseException) -> bool:
    """Return whether an exception was raised in, or passed through, the driver or client."""
    return any(
        is_drivers_file(frame.filename) for frame in traceback.extract_tb(error.__traceback__)
    )


def is_drivers_file(name: str) -> bool:
    """Return whether a source file belongs to the driver or client."""
    return Path(name).resolve().is_relative_to(_DRIVER)


def in_one_line(error: BaseException) -> str:
    """Format an exception, and the source line that raised it, as one line of text."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}: {error}"
