"""Finds the statement that an edit of a function changes, and the line before which it can be
counted.

    for gap in gaps:                   for gap in gaps:
        if gap.length > 0:      --->       if gap.length > 0:
            send(gap)                          planted.note()      counted here
                                               send(gap, 1)

The innermost changed statement is taken. A statement in whose place nothing is left is counted
before the one that follows it. Where no line can be inserted (`elif`, or a body on the line of its
header), the statement around it is counted.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Place(NamedTuple):
    """Where a statement can be inserted: before a line, with an indentation."""

    line: int
    column: int


def place_of_edit(
    original: ast.FunctionDef, edited: ast.FunctionDef, lines: Sequence[str]
) -> Place:
    """Return where executions of the changed statement can be counted.

    `lines` are those of the edited file. The functions must differ.
    """
    found = _in_body(original.body, edited.body, lines)
    return found or Place(edited.body[0].lineno, edited.body[0].col_offset)


def _in_body(
    before: Sequence[ast.stmt], after: Sequence[ast.stmt], lines: Sequence[str]
) -> Place | None:
    """Return where the first changed statement of a body is counted, or None if no line can be
    inserted there.
    """
    pairs = list(zip(before, after, strict=False))
    index = next(
        (at for at, pair in enumerate(pairs) if ast.dump(pair[0]) != ast.dump(pair[1])), len(pairs)
    )
    if index == len(after):
        last = after[-1]
        return Place((last.end_lineno or last.lineno) + 1, last.col_offset)
    if len(before) == len(after) and _header(before[index]) == _header(after[index]):
        changed = (
            each
            for each in _bodies(before[index], after[index])
            if _dumps(each[0]) != _dumps(each[1])
        )
        inner = next((_in_body(old, new, lines) for old, new in changed if new), None)
        if inner:
            return inner
    return _before(after[index], lines)


def _before(statement: ast.stmt, lines: Sequence[str]) -> Place | None:
    start = min(
        [statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))]
    )
    line = lines[start - 1]
    is_first = not line[: statement.col_offset].strip()
    if not is_first or line.lstrip().startswith("elif"):
        return None
    return Place(start, statement.col_offset)


def _bodies(
    before: ast.stmt, after: ast.stmt
) -> Iterator[tuple[Sequence[ast.stmt], Sequence[ast.stmt]]]:
    """Yield the bodies of two compound statements with equal headers."""
    for name in ("body", "orelse", "finalbody"):
        yield getattr(before, name, []), getattr(after, name, [])
    handlers = getattr(before, "handlers", []), getattr(after, "handlers", [])
    for old, new in zip(*handlers, strict=False):
        yield old.body, new.body


def _header(statement: ast.stmt) -> str:
    """Return a compound statement without its bodies as a string, or another one completely."""
    if not hasattr(statement, "body"):
        return ast.dump(statement)
    fields = {
        name: value
        for name, value in ast.iter_fields(statement)
        if name not in ("body", "orelse", "finalbody", "handlers")
    }
    return f"{type(statement).__name__} {[(name, _text(each)) for name, each in fields.items()]}"


def _text(value: object) -> str:
    if isinstance(value, list):
        return str([_text(each) for each in value])
    return ast.dump(value) if isinstance(value, ast.AST) else repr(value)


def _dumps(body: Sequence[ast.stmt]) -> list[str]:
    return [ast.dump(each) for each in body]
