"""The results of a run as a table, and what its applications saw, as lines.

    prices                 a to b                                  goodput      delivered
    goodput                2.09 of 2.10 MB/s          ticks: a to b    2.09 MB/s    8,192 of 8,192
    delivered              8,192 of 8,192             ticks: a to c    2.09 MB/s    8,192 of 8,192

A table has a column for each stream and subscriber, or a line if columns do not fit the terminal
and take more lines. Columns that do not fit are printed in additional tables.
"""

import shutil
import textwrap
from collections.abc import Iterator, Sequence

from windtunnel.harness.artifact.noun_form import counted
from windtunnel.harness.artifact.run.comparison import (
    ComparedRun,
    brief_cells,
    compared_streams,
    different_parameters,
    found_first,
)
from windtunnel.harness.artifact.run.observed import Observations
from windtunnel.harness.artifact.run.result_row import (
    UNKNOWN,
    ResultRow,
    known_cells,
    rest_text,
    shown_first,
)
from windtunnel.harness.cli.render.table import printable

INDENT = "    "
GAP = "  "
PARAMETERS_MAX = 24
"""Maximum number of different parameters on the terminal. The JSON document has more of them."""
TEXT_MAX = 48
"""Maximum length of a parameter's name or value on the terminal."""
SENTENCES_MAX = 12
"""Maximum number of sentences on the terminal. The report has all of them."""


def result_lines(rows: Sequence[ResultRow], width: int | None = None) -> Iterator[str]:
    """Yield the lines of a run's results table, and a line for the streams that are not in it. The
    default for `width` is the width of the terminal.
    """
    rows, others = shown_first(rows)
    yield from _row_lines(rows, width)
    if others:
        text = rest_text(others, is_more=bool(rows))
        yield f"{INDENT}{printable(text)}: see --json"


def _row_lines(rows: Sequence[ResultRow], width: int | None) -> Iterator[str]:
    known, texts = known_cells(rows) if rows else ([], [])
    if not known:
        return
    columns = [
        [printable(f"{row.traffic}: {row.from_host} to {row.to_host}"), *each]
        for row, each in zip(rows, texts, strict=True)
    ]
    titles = ["", *known]
    names, *figures = ([*each] for each in zip(titles, *columns, strict=True))
    lines = list(_tables(titles, columns, width))
    if len(lines) > len(titles):
        lines = min(lines, list(_tables(names, figures, width)), key=len)
    yield from lines


def observation_lines(observed: Observations, width: int | None = None) -> Iterator[str]:
    """Yield lines with what a run's applications saw. Nothing is yielded if there is nothing to
    report.
    """
    sentences = observed.all_sentences
    if not sentences:
        return
    width = width or _terminal_width()
    yield f"{INDENT}{observed.title}"
    for sentence in sentences[:SENTENCES_MAX]:
        yield from textwrap.wrap(
            printable(sentence),
            max(width, 40),
            initial_indent=f"{INDENT}- ",
            subsequent_indent=f"{INDENT}  ",
        )
    if len(sentences) > SENTENCES_MAX:
        yield f"{INDENT}- {len(sentences) - SENTENCES_MAX} more: see the report"


def comparison_lines(runs: Sequence[ComparedRun], width: int | None = None) -> Iterator[str]:
    """Yield the lines of a comparison: a table of the parameters that differ, and one for each
    stream, with a column for each run.
    """
    yield from _parameter_lines(runs, width)
    named, found, others = found_first(compared_streams(runs))
    for stream in named:
        yield printable(stream.name)
        cells = list(stream.cells())
        titles = ["", "verdict", *(title for title, _ in cells)]
        columns = [
            [printable(run.name), printable(run.outcome), *(texts[index] for _, texts in cells)]
            for index, run in enumerate(runs)
        ]
        yield from _tables(titles, columns, width)
    if found:
        yield "streams that the captures show"
        lines = [(printable(each.name), each.brief_cells()) for each in found]
        if others:
            lines.append(
                (f"{counted(len(others), 'more stream')} (see --json)", brief_cells(others))
            )
        columns = [
            [printable(run.name), *(texts[index] for _, texts in lines)]
            for index, run in enumerate(runs)
        ]
        yield from _tables(["", *(title for title, _ in lines)], columns, width)


def _parameter_lines(runs: Sequence[ComparedRun], width: int | None) -> Iterator[str]:
    """Yield a table of the parameters that differ between runs."""
    for run in runs:
        if run.parameters is None and run.unknown:
            yield f"parameters of {printable(run.name)} are unknown: {printable(run.unknown)}"
    if sum(run.parameters is not None for run in runs) < 2:
        return
    different = different_parameters(runs)
    if not different:
        yield "parameters: no difference"
        return
    yield "parameters that differ"
    shown = different[:PARAMETERS_MAX]
    titles = ["", *(_cut(each.name) for each in shown)]
    columns = [
        [printable(run.name), *(_cut(each.values[index] or UNKNOWN) for each in shown)]
        for index, run in enumerate(runs)
    ]
    yield from _tables(titles, columns, width)
    if len(different) > len(shown):
        yield f"{INDENT}{len(different) - len(shown)} more: see --json"


def _cut(text: str) -> str:
    text = printable(text)
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 3]}..."


def _tables(titles: list[str], columns: list[list[str]], width: int | None) -> Iterator[str]:
    """Yield the lines of one or more tables, which together show all columns in the given width."""
    width = width or _terminal_width()
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


def _terminal_width() -> int:
    return shutil.get_terminal_size((120, 24)).columns


def _width(column: Sequence[str]) -> int:
    return max(map(len, column))
