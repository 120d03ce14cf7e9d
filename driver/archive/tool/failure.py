"""The exception that ends a command with one line on stderr and an exit code.

0    success
1    no archive in the directory, or no such recording
2    the archive is damaged, or cannot be read or written; or its own driver has ended
64   invalid command line
124  timeout: the media driver is not running, or it or this process was not scheduled for too long
130  interrupted
141  stdout is no longer read
"""

import click

from windtunnel.driver.client.errors import TIMEOUTS

OK, NOT_FOUND, DAMAGED, USAGE, TIMED_OUT = 0, 1, 2, 64, 124
INTERRUPTED, BROKEN_PIPE = 130, 141


class Failure(click.ClickException):
    """An error that a command reports as one line on stderr and an exit code."""

    exit_code: int  # type: ignore[misc]  # click declares it for the class; here it varies

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.exit_code = code


def code_of(error: BaseException) -> int:
    """Return the exit code for an error that ended an archive or a command. The types of the error
    and of its cause determine the code.
    """
    is_timeout = any(isinstance(each, TIMEOUTS) for each in (error, error.__cause__))
    return TIMED_OUT if is_timeout else DAMAGED


def printable(text: str) -> str:
    """Escape the characters that a terminal would interpret. The text comes from a file."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
