"""Determines whether an exception in the simulator counts as a failure of the driver, of the client
or archive of a program, or of the harness.

A failed assertion in a compiled kernel leaves no such traceback, so it counts as a defect of the
harness until it has been investigated.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from windtunnel import driver

_DRIVER = Path(driver.__file__).resolve().parent
_MEDIA_DRIVER = _DRIVER / "media_driver"


def is_drivers(error: BaseException) -> bool:
    """Return whether an exception was raised in, or passed through, the driver, client or
    archive.
    """
    return any(map(is_drivers_file, _files(error)))


def is_programs(error: BaseException) -> bool:
    """Return whether an exception in a program's step is one of its client or archive, and not of
    the media driver, whose duty cycle the program runs while it waits for a response.
    """
    is_of_media_driver = any(
        Path(each).resolve().is_relative_to(_MEDIA_DRIVER) for each in _files(error)
    )
    return is_drivers(error) and not is_of_media_driver


def _files(error: BaseException) -> list[str]:
    return [each.filename for each in traceback.extract_tb(error.__traceback__)]


def is_drivers_file(name: str) -> bool:
    """Return whether a source file belongs to the driver, client or archive."""
    return Path(name).resolve().is_relative_to(_DRIVER)


def in_one_line(error: BaseException) -> str:
    """Format an exception, and the source line that raised it, as one line of text."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}: {error}"
