"""The results of a run as a table: a column for each stream and subscriber, a line per figure.

    prices                 a to b
    goodput                2.09 of 2.10 MB/s
    delivered              8,192 of 8,192

Columns that do not fit the terminal are printed in additional tables.
"""

import shutil
from collections.abc import Iterator, Sequence

from windtunnel.harness.artifact.run.comparison import ComparedRun, compared_streams
from windtunnel.harness.artifact.run.result_row import ResultRow
from windtunnel.harness.cli.render.table import printable

INDENT = "    "
GAP = "  "


def result_lines(rows: Sequence[ResultRow], width: int | None = None) -> Iterator[str]:
    """Yield the lines of a run's results table. The default for `width` is the width of the
    terminal.
    """
    if not rows:
        return
    columns = [
        [printable(f"{each.traffic}: {each.from_host} to {each.to_host}"), *_texts(each)]
        for each in rows
    ]
    titles = ["", *(title for title, _ in rows[0].cells())]
    yield from _tables(titles, columns, width)


def comparison_lines(runs: Sequence[ComparedRun], width: int | None = None) -> Iterator[str]:
    """Yield the lines of a comparison: a table for each stream, with a column for each run."""
    for stream in compared_streams(runs):
        yield printable(stream.name)
        cells = list(stream.cells())
        titles = ["", "verdict", *(title for title, _ in cells)]
        columns = [
            [printable(run.name), printable(run.outcome), *(texts[index] for _, texts in cells)]
            for index, run in enumerate(runs)
        ]
        yield from _tables(titles, columns, width)


def _tables(titles: list[str], columns: list[list[str]], width: int | None) -> Iterator[str]:
    """Yield the lines of one or more tables, which together show all columns in the given width."""
    width = width or shutil.get_terminal_size((120, 24)).columns
    while columns:
        count, taken = 0, len(INDENT) + _width(titles)
        for column in columns:
            taken += len(GAP) + _width(column)
            if count and taken > width:
                break
            count += 1
        shown, columns = [titles, *columns[:count]], columns[count:]
        for cells in zip(*shown, strict=True):
            padded = (cell.ljust(_width(of)) for cell, of in zip(cells, shown, strict=True))
            yield (INDENT + GAP.join(padded)).rstrip()


def _texts(row: ResultRow) -> list[str]:
    return [text for _, text in row.cells()]


def _width(column: Sequence[str]) -> int:
    return max(map(len, column))
