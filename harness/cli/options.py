"""Options that several commands share, and how their values are parsed."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., object])

SEED = click.IntRange(min=0, max=(1 << 63) - 1)
"""The type of options with a seed. The maximum is that of `seeds: root` in a scenario."""
SEEDS = click.IntRange(min=1, max=100_000)
"""The type of options with a number of runs, all of which are planned before the first one starts.
The maximum is that of `seeds: count` in a scenario.
"""


class NumberRange(click.FloatRange):
    """A range of numbers. Unlike click's, it does not contain nan, which is never out of range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


class InputFile(click.ParamType):  # type: ignore[type-arg]  # generic in newer click
    """An existing file with at least one byte. `what` names its content in error messages. If it is
    read more than once, it must be a regular file, and no pipe.
    """

    name = "file"

    def __init__(self, what: str, *, is_read_once: bool = True) -> None:
        self._what, self._is_read_once = what, is_read_once

    def convert(
        self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        path = Path(value)
        expected = f"{value}: expected {self._what}"
        if path.is_dir():
            self.fail(f"{expected}, found a folder", param, ctx)
        if not path.exists():
            self.fail(f"{expected}, found no such file", param, ctx)
        if not path.is_file() and not self._is_read_once:
            self.fail(f"{expected}, found no regular file", param, ctx)
        if path.is_file() and path.stat().st_size == 0:
            self.fail(f"{expected} with at least one byte, found an empty file", param, ctx)
        return path


def in_existing_folder(
    context: click.Context, parameter: click.Parameter, file: Path | None
) -> Path | None:
    """Refuse a file to write whose folder does not exist (click callback). A mistake in a path
    would otherwise create a folder in an unexpected place.
    """
    if file is not None and not file.absolute().parent.is_dir():
        raise click.BadParameter(f"expected an existing folder, found no folder {file.parent}")
    return file


def name_values(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    """Parse NAME=VALUE options into a dictionary (click callback)."""
    found = {}
    for text in texts:
        name, mark, value = text.partition("=")
        if not mark or not name:
            raise click.BadParameter(f"expected NAME=VALUE, found {text!r}")
        found[name] = value
    return found


def out_option(text: str) -> Callable[[_Command], _Command]:
    """Return the option --out for a folder of runs."""
    return click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("runs"),
        help=f"{text}  [default: runs]",
    )


payload_option = click.option(
    "--payload",
    type=InputFile("a file to send", is_read_once=False),
    metavar="FILE",
    help="File to send.  [default: an archive of Python's standard library]",
)
kernel_option = click.option(
    "--kernel",
    type=click.Choice(["host", "uml"]),
    default="host",
    help="Kernel to use: this machine's, or User Mode Linux, which has netem.  [default: host]",
)
