"""`--junit FILE` and `--markdown FILE`: suite or matrix results in formats for CI systems."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from windtunnel.harness.cli.options import in_existing_folder

if TYPE_CHECKING:
    from windtunnel.reports.outcomes import Outcomes

_Command = TypeVar("_Command", bound=Callable[..., object])


def ci_options(command: _Command) -> _Command:
    """Add --junit and --markdown to a command."""
    for name, text in (
        ("--markdown", "Also append a Markdown summary to FILE."),
        ("--junit", "Also write JUnit XML to FILE."),
    ):
        kind = click.Path(dir_okay=False, writable=True, path_type=Path)
        command = click.option(
            name, type=kind, callback=in_existing_folder, metavar="FILE", help=text
        )(command)
    return command


def write_ci_files(outcomes: "Outcomes", junit: Path | None, markdown: Path | None) -> None:
    """Write the requested JUnit and Markdown files. Markdown is appended, as CI job summaries
    require."""
    from windtunnel.harness.artifact.regular_file import naming
    from windtunnel.reports.junit import junit_xml
    from windtunnel.reports.markdown import summary

    if junit is not None:
        with naming(junit):
            junit.write_bytes(junit_xml(outcomes))
    if markdown is not None:
        with naming(markdown), markdown.open("a", encoding="utf-8") as file:
            file.write(summary(outcomes))
