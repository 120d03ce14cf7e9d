"""Whose fault an exception is: the driver's or client's if it came through their code.

A failed assertion of a kernel has no such trace; it is taken for ours until somebody looks.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from windtunnel import driver

_DRIVER = Path(driver.__file__).resolve().parent


def is_drivers(error: BaseException) -> bool:
    """Whether an exception was raised in, or passed through, the code under test."""
    return any(
        Path(frame.filename).resolve().is_relative_to(_DRIVER)
        for frame in traceback.extract_tb(error.__traceback__)
    )


def in_one_line(error: BaseException) -> str:
    """An exception and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}: {error}"
