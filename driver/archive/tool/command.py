"""The `windtunnel archive` command group, and the options and arguments that several of its
commands use.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from windtunnel.driver.archive.storage.checksum import Checksum, by_name
from windtunnel.driver.base.errors import ConfigurationError

PROGRAM = "windtunnel archive"
_Command = TypeVar("_Command", bound=Callable[..., Any])
_EXIT_CODES = """\b
Exit codes: 0 success; 1 no archive in the directory, or no such recording; 2 the archive is
damaged, or cannot be read or written; 64 invalid command line; 130 interrupted; 141 stdout is
no longer read"""
EXIT_CODES = f"{_EXIT_CODES}.\n"
GROUP_EXIT_CODES = f"""{_EXIT_CODES}; 124 from `archive run` without a media driver.
"""
RUN_EXIT_CODES = """\b
Exit codes: 0 shut down; 2 the archive has failed, or its directory cannot be read or written;
64 invalid command line or settings; 124 the media driver is not running, or it or this process
was not scheduled for too long; 130 interrupted; 141 stdout is no longer read.
"""


class OrderedGroup(click.Group):
    """A command group that lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=OrderedGroup,
    epilog=GROUP_EXIT_CODES,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.pass_context
def archive(ctx: click.Context) -> None:
    """Run an archive, or inspect and repair the directory of any Aeron archive.

    \b
      windtunnel archive run --with-driver archive.properties
      windtunnel archive describe --dir /data/archive
      windtunnel archive dump 0 --limit 10
      windtunnel archive verify --all-segments --checksum CRC-32C --read-only
      windtunnel archive recover --dry-run

    Commands that only read can be used while the archive is running. Commands that write cannot.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def directory_option(command: _Command) -> _Command:
    """Add the command-line option for the archive's directory."""
    return click.option(
        "--dir",
        "archive_dir",
        type=click.Path(path_type=Path),
        envvar="AERON_ARCHIVE_DIR",
        default="aeron-archive",
        show_default="$AERON_ARCHIVE_DIR, else aeron-archive",
        help="The archive's directory.",
    )(command)


def json_option(command: _Command) -> _Command:
    """Add the command-line option for JSON output."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def id_argument(*, required: bool = False) -> Callable[[_Command], _Command]:
    """Add the command-line argument for a recording id."""
    return click.argument("recording_id", type=click.IntRange(min=0), required=required)


class ChecksumName(click.ParamType):  # type: ignore[type-arg]  # generic in new click
    """The parameter type for a checksum: `CRC-32`, `CRC-32C`, or the name of Aeron's class."""

    name = "checksum"

    def convert(
        self, value: object, parameter: click.Parameter | None, context: click.Context | None
    ) -> Checksum:
        if isinstance(value, Checksum):
            return value
        try:
            return by_name(str(value))
        except ConfigurationError as error:
            self.fail(str(error), parameter, context)


def all_segments_option(command: _Command) -> _Command:
    """Add the command-line option to process all segment files instead of only the last one."""
    return click.option(
        "-a",
        "--all-segments",
        is_flag=True,
        help="Process all segment files instead of only the last one.",
    )(command)
