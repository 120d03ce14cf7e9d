"""Converts an exception to the text of an error log entry."""

import traceback

from windtunnel.driver.base.errors import DriverError


def describe_error(error: Exception) -> str:
    """Return the message of a DriverError, or the traceback of any other exception."""
    if isinstance(error, DriverError):
        return str(error)
    return "".join(traceback.format_exception(error))
