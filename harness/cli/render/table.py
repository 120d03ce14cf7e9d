"""An inspection command's output in all formats: heading, table, footer, and JSON document.

    pipe        columns padded to their widest cell, two spaces between; no escape sequences
    terminal    the same, cut to the window; changed rows are bold
    --json      the document

Strings come from untrusted files, so unprintable characters are escaped. All commands print
untrusted strings with `echo`, or pass them to `printable` before they add colours.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from windtunnel.harness.artifact.escaped_text import escaped

if TYPE_CHECKING:
    from rich.console import RenderableType

GAP = "  "
FRAME_LINES = 4
"""Number of lines around the table in a live view: heading, count of hidden lines, footer, problem.
"""


@dataclass(frozen=True)
class Column:
    """A column's title, and whether the column contains numbers. Numbers are right-aligned."""

    title: str
    is_number: bool = False


@dataclass(frozen=True)
class View:
    """The content that an inspection command shows at one time, for all output formats."""

    heading: str
    columns: tuple[Column, ...]
    rows: list[tuple[str, ...]]
    "Each row has one cell per column. A cell may contain several lines."
    document: dict[str, Any]
    closing: str = ""
    problem: str = ""
    "A description of what could not be read. It is printed on stderr, and the exit code is 2."
    keys: list[object] = field(default_factory=list)
    "A key for each row. It identifies the row in the next View, to highlight changed rows."


def echo(text: str, *, err: bool = False) -> None:
    """Print a string from an untrusted source, such as a scenario, a run folder or a driver.
    Unprintable characters are escaped.
    """
    click.echo(printable(text), err=err)


def printable(text: str) -> str:
    """Escape unprintable characters. Line ends are kept, and tabs become spaces."""
    lines = text.replace("\r\n", "\n").expandtabs(4).split("\n")
    return "\n".join(escaped(each) for each in lines)


def plain_lines(view: View) -> Iterator[str]:
    """Yield a View's lines as plain text."""
    yield printable(view.heading)
    for _, line in _table_lines(view):
        yield line
    if view.closing:
        yield printable(view.closing)


def _table_lines(view: View) -> Iterator[tuple[int | None, str]]:
    """Yield each line of the table with its row index, or None for title lines. Yields nothing if
    the table has no rows.
    """
    if not view.rows:
        return
    rows = [[printable(cell).rstrip("\n").split("\n") for cell in row] for row in view.rows]
    titles = [[column.title] for column in view.columns]
    widths = [
        max(len(line) for row in [titles, *rows] for line in row[index])
        for index in range(len(view.columns))
    ]
    yield None, _line(view.columns, widths, [column.title for column in view.columns])
    for index, row in enumerate(rows):
        for line in range(max(len(cell) for cell in row)):
            yield index, _line(view.columns, widths, [_at(cell, line) for cell in row])


def _at(lines: list[str], index: int) -> str:
    return lines[index] if index < len(lines) else ""


def _line(columns: tuple[Column, ...], widths: list[int], cells: list[str]) -> str:
    padded = (
        cell.rjust(width) if column.is_number else cell.ljust(width)
        for column, width, cell in zip(columns, widths, cells, strict=True)
    )
    return GAP.join(padded).rstrip()


def drawn(view: View, changed: set[object], lines_max: int) -> "RenderableType":
    """Render a View for a window of `lines_max` lines. Rows whose key is in `changed` are bold."""
    from rich.console import Group
    from rich.text import Text

    def text(line: str, style: str = "") -> Text:
        return Text(line, style=style, no_wrap=True, overflow="ellipsis")

    lines = list(_table_lines(view))
    room = max(2, lines_max - FRAME_LINES)
    parts = [text(printable(view.heading), "dim")]
    for index, line in lines[:room]:
        key = view.keys[index] if index is not None and index < len(view.keys) else None
        is_bold = index is None or (key is not None and key in changed)
        parts.append(text(line, "bold" if is_bold else ""))
    if len(lines) > room:
        hidden = len(lines) - room
        parts.append(text(f"{hidden} more lines: use a taller window, a filter, or --once", "dim"))
    if view.closing:
        parts.append(text(printable(view.closing)))
    if view.problem:
        parts.append(text(printable(view.problem), "red"))
    return Group(*parts)
