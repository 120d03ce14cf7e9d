"""What a tool could not do: a line on stderr and an exit code.

0    done
1    nothing is there: no archive, no such recording
2    it is there and cannot be read, written or trusted; or a driver of one's own has ended
64   the command line is wrong
124  the media driver is not there, or it or this program had no turn for too long
"""

import click

from windtunnel.driver.client.errors import TIMEOUTS

OK, NOTHING, DAMAGED, USAGE, UNANSWERED = 0, 1, 2, 64, 124
INTERRUPTED, BROKEN_PIPE = 130, 141


class Failure(click.ClickException):
    """A line on stderr and an exit code."""

    exit_code: int  # type: ignore[misc]  # click declares it for the class; ours differs by failure

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.exit_code = code


def code_of(error: BaseException) -> int:
    """The exit code of what ended an archive or a tool, by it or by its cause."""
    was_left = any(isinstance(each, TIMEOUTS) for each in (error, error.__cause__))
    return UNANSWERED if was_left else DAMAGED


def printable(text: str) -> str:
    """Text out of a file, with escapes in place of what a terminal would obey."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
