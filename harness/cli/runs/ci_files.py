"""`--junit FILE` and `--markdown FILE`: what a CI system reads of a suite or a matrix."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from windtunnel.reports.outcomes import Outcomes

_Command = TypeVar("_Command", bound=Callable[..., object])


def ci_options(command: _Command) -> _Command:
    """Add both options to a command."""
    for name, what in (
        ("--markdown", "Also write a summary in markdown to FILE; a summary of a job appends."),
        ("--junit", "Also write JUnit XML to FILE."),
    ):
        kind = click.Path(dir_okay=False, writable=True, path_type=Path)
        command = click.option(name, type=kind, metavar="FILE", help=what)(command)
    return command


def write_ci_files(outcomes: "Outcomes", junit: Path | None, markdown: Path | None) -> None:
    """Write what was asked for; the summary goes behind what is in its file, as CI systems want."""
    from windtunnel.reports.junit import junit_xml
    from windtunnel.reports.markdown import summary

    if junit is not None:
        junit.parent.mkdir(parents=True, exist_ok=True)
        junit.write_bytes(junit_xml(outcomes))
    if markdown is not None:
        markdown.parent.mkdir(parents=True, exist_ok=True)
        with markdown.open("a", encoding="utf-8") as file:
            file.write(summary(outcomes))
