"""Executions of an edit are counted before the innermost statement that it changes."""

import ast

import pytest

from windtunnel.harness.exam.edited_statement import Place, place_of_edit

SOURCE = """\
def scan(gaps, limit):
    count = 0
    for gap in gaps:
        if gap > limit:
            count += 1
            note(gap)
        elif gap < 0:
            count -= 1
        else: count += 2
    while count > limit:
        count -= 1
    try:
        note(count)
    except ValueError:
        note(0)
    with limit:
        note(1)
    return count
"""


def place(old, new):
    assert SOURCE.count(old) == 1
    edited = SOURCE.replace(old, new)
    functions = [ast.parse(text).body[0] for text in (SOURCE, edited)]
    return place_of_edit(*functions, edited.splitlines())


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("count = 0", "count = 1", Place(2, 4)),
        ("in gaps:", "in gaps[1:]:", Place(3, 4)),
        ("gap > limit", "gap >= limit", Place(4, 8)),
        ("note(gap)", "note(gap + 1)", Place(6, 12)),
        ("            note(gap)\n", "", Place(6, 4 + 4 + 4)),
        ("            count += 1\n", "", Place(5, 12)),
        (
            "            count -= 1\n        else",
            "            count -= 2\n        else",
            Place(8, 12),
        ),
        ("        count -= 1\n    try", "        count -= 2\n    try", Place(11, 8)),
        ("note(0)", "note(2)", Place(15, 8)),
        ("note(1)", "note(2)", Place(17, 8)),
        ("return count", "return count + 1", Place(18, 4)),
        ("    return count\n", "", Place(18, 4)),
    ],
)
def test_the_innermost_changed_statement_is_counted(old, new, expected):
    assert place(old, new) == expected


@pytest.mark.parametrize(("old", "new"), [("gap < 0", "gap <= 0"), ("count += 2", "count += 3")])
def test_where_no_line_fits_the_statement_around_it_is_counted(old, new):
    assert place(old, new) == Place(4, 8)


@pytest.mark.parametrize(
    ("old", "new"), [("gap < 0", "gap <= 0"), ("count += 2", "count += 3"), ("note(gap)", "pass")]
)
def test_an_inserted_line_leaves_a_valid_function(old, new):
    at = place(old, new)
    lines = SOURCE.replace(old, new).splitlines()
    lines.insert(at.line - 1, " " * at.column + "counted()")
    ast.parse("\n".join(lines))
