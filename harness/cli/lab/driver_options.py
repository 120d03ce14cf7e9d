"""The options that name the drivers of hosts and their settings."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

_FUNCTION = TypeVar("_FUNCTION", bound=Callable[..., Any])
_OF_HOST = re.compile(r"(?P<host>[a-z0-9-]+)=(?P<peer>.+)", re.DOTALL)
_SETTING = re.compile(r"(?P<host>[^:=]+):(?P<name>[^:=]+)=(?P<value>.*)", re.DOTALL)


def _driver(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> str | dict[str, str]:
    """Parse the driver of all hosts, or those of single hosts (click callback)."""
    found = {}
    for text in texts:
        matched = _OF_HOST.fullmatch(text)
        if matched is None:
            if len(texts) > 1:
                expected = "expected one driver for all hosts, or HOST=PEER each time"
                raise click.BadParameter(f"{expected}, found {text!r}")
            return text
        found[matched["host"]] = matched["peer"]
    return found


def _settings(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, dict[str, str]]:
    """Parse HOST:NAME=VALUE options (click callback)."""
    found: dict[str, dict[str, str]] = {}
    for text in texts:
        matched = _SETTING.fullmatch(text)
        if matched is None:
            example = "a:AERON_SOCKET_SO_RCVBUF=2m"
            raise click.BadParameter(f"expected HOST:NAME=VALUE, such as {example}, found {text!r}")
        found.setdefault(matched["host"], {})[matched["name"]] = matched["value"]
    return found


def driver_options(command: _FUNCTION) -> _FUNCTION:
    """Add the options of the hosts' drivers to a command (decorator)."""
    command = click.option(
        "--setting",
        "drivers",
        multiple=True,
        callback=_settings,
        metavar="HOST:NAME=VALUE",
        help="A setting of the driver on a host, such as a:AERON_SOCKET_SO_RCVBUF=2m. Can be "
        "repeated.",
    )(command)
    return click.option(
        "--driver",
        multiple=True,
        callback=_driver,
        metavar="[HOST=]PEER",
        help="Media driver of all hosts, or of one host: ours, pyaeron, java, aeronmd:/path or "
        "image:NAME. Can be repeated for several hosts.  [default: ours]",
    )(command)
