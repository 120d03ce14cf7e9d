"""The options that name impairments of a link."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

NONE = "none"
"""The value that removes an impairment."""
_FUNCTION = TypeVar("_FUNCTION", bound=Callable[..., Any])
_OPTIONS = (
    ("loss", "2%", "Share of the packets that are lost"),
    ("delay", "20ms", "Delay of all packets"),
    ("rate", "100Mbit/s", "Rate limit"),
    ("duplicate", "1%", "Share of the packets that are duplicated"),
    ("corrupt", "1%", "Share of the packets in which a bit is changed"),
)


def _queue(context: click.Context, parameter: click.Parameter, text: str | None) -> Any:
    """Parse a length in packets, or `none` (click callback)."""
    if text is None or text == NONE:
        return text
    if not text.isdecimal():
        raise click.BadParameter(f"expected a number of packets, found {text!r}")
    return int(text)


def _reorder(context: click.Context, parameter: click.Parameter, text: str | None) -> Any:
    """Parse a share, with a gap or without, or `none` (click callback)."""
    if text is None or text == NONE:
        return text
    share, mark, gap = text.partition("/")
    if mark and not gap.isdecimal():
        raise click.BadParameter(f"expected SHARE or SHARE/GAP, such as 1%/5, found {text!r}")
    return {"share": share, "gap": int(gap)} if mark else {"share": share}


def impairment_options(command: _FUNCTION) -> _FUNCTION:
    """Add the options of a link's impairments to a command (decorator)."""
    command = click.option(
        "--reorder",
        metavar="SHARE/GAP",
        callback=_reorder,
        help="Share of the packets that overtake others, such as 1%, or of every fifth: 1%/5.",
    )(command)
    command = click.option(
        "--queue",
        metavar="PACKETS",
        callback=_queue,
        help="Length of the queue of a link with a rate limit, such as 50.",
    )(command)
    for name, example, text in reversed(_OPTIONS):
        command = click.option(f"--{name}", metavar="VALUE", help=f"{text}, such as {example}.")(
            command
        )
    return command
