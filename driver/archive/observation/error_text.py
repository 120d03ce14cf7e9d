"""The text of an error for the error log."""

import traceback

from windtunnel.driver.base.errors import DriverError


def describe_error(error: Exception) -> str:
    """Return the text of a DriverError; for any other error, which is a defect, its traceback."""
    if isinstance(error, DriverError):
        return str(error)
    return "".join(traceback.format_exception(error))
