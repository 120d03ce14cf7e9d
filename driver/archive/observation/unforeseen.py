"""How an error that ended one piece of an archive's work is told in its error log."""

import traceback

from windtunnel.driver.base.errors import DriverError


def told(error: Exception) -> str:
    """What the world did to us by its text; a defect of ours with the way that led to it."""
    if isinstance(error, DriverError):
        return str(error)
    return "".join(traceback.format_exception(error))
