"""The options that name impairments of a link."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

_FUNCTION = TypeVar("_FUNCTION", bound=Callable[..., Any])
_OPTIONS = (
    ("loss", "2%", "Share of the packets that are lost"),
    ("delay", "20ms", "Delay of all packets"),
    ("rate", "100Mbit/s", "Rate limit"),
    ("duplicate", "1%", "Share of the packets that are duplicated"),
    ("corrupt", "1%", "Share of the packets in which a bit is changed"),
)


def impairment_options(command: _FUNCTION) -> _FUNCTION:
    """Add the options of a link's impairments to a command (decorator)."""
    for name, example, text in reversed(_OPTIONS):
        command = click.option(f"--{name}", metavar="VALUE", help=f"{text}, such as {example}.")(
            command
        )
    return command
