"""What the verbs of the command line share: the group, the directory, the names of things."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from windtunnel.driver.archive.storage.checksum import Checksum, by_name
from windtunnel.driver.base.errors import ConfigurationError

PROGRAM = "windtunnel archive"
_Command = TypeVar("_Command", bound=Callable[..., Any])
EXIT_CODES = """\b
Exit codes: 0 done; 1 nothing is there: no archive, no such recording; 2 it is there and cannot
be read, written or trusted; 64 wrong command line.
"""


class InOrder(click.Group):
    """A group that lists its verbs in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=InOrder,
    epilog=EXIT_CODES,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.pass_context
def archive(ctx: click.Context) -> None:
    """Be an archive; look into the directory of one, Aeron's or ours, and mend it.

    \b
      windtunnel archive run --with-driver archive.properties
      windtunnel archive describe --dir /data/archive
      windtunnel archive dump 0 --limit 10
      windtunnel archive verify --all-segments --checksum CRC-32C --read-only
      windtunnel archive recover --dry-run

    What only looks may do so while the archive lives; what writes refuses to.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def directory_option(command: _Command) -> _Command:
    """The archive's directory."""
    return click.option(
        "--dir",
        "where",
        type=click.Path(path_type=Path),
        envvar="AERON_ARCHIVE_DIR",
        default="aeron-archive",
        show_default="$AERON_ARCHIVE_DIR, else aeron-archive",
        help="The archive's directory.",
    )(command)


def json_option(command: _Command) -> _Command:
    return click.option("--json", "as_json", is_flag=True, help="One JSON document for machines.")(
        command
    )


def id_argument(*, required: bool = False) -> Callable[[_Command], _Command]:
    """Which recording."""
    return click.argument("recording_id", type=click.IntRange(min=0), required=required)


class ChecksumName(click.ParamType):  # type: ignore[type-arg]  # generic in new click
    """`CRC-32`, `CRC-32C`, or the name of Aeron's class for one of them."""

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
    """Not only the last file, in which a kill may have left its trace."""
    return click.option(
        "-a", "--all-segments", is_flag=True, help="All segment files, not the last one alone."
    )(command)
