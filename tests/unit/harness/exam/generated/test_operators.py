"""Each operator makes its edits, but none that would prevent a kernel from compiling."""

import ast

import pytest

from windtunnel.harness.exam.generated.operators import edits


def made(body: str) -> list[tuple[str, str]]:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    function = ast.parse(f"def f(a, b):\n{lines}\n").body[0]
    return [(each.operator, each.text) for each in edits(function)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return a < b", [("comparison", "(a <= b)"), ("comparison", "(a >= b)")]),
        ("return a >= b", [("comparison", "(a > b)"), ("comparison", "(a < b)")]),
        ("return a != b", [("comparison", "(a == b)")]),
        ("return a + b", [("sign", "(a - b)")]),
        ("return a - b", [("sign", "(a + b)")]),
        ("return 3", [("constant", "4")]),
        ("return min(a, b)", [("extreme", "(max(a, b))")]),
        ("return a and b", [("connective", "(a or b)")]),
        ("return not a", [("negation", "(not not a)")]),
        ("a.x = b", [("drop", "pass")]),
        ("a[b] = a", [("drop", "pass")]),
        ("a += b", [("drop", "pass")]),
        ("a(b)", [("drop", "pass")]),
        ("term_offset = a", [("frame", "(a + 32)")]),
        ("a.gap_length = b", [("drop", "pass"), ("frame", "(b + 32)")]),
        ("term_offset = a[b]", [("frame", "(a[b] + 32)")]),
        ("term_offset = a.b[c]", []),
        ("return a(term_id, term_offset)", [("arguments", "(a(term_offset, term_id))")]),
    ],
)
def test_an_operator_makes_its_edits(body, expected):
    assert made(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        "'''A docstring.'''",
        "return a",
        "a = b",
        "assert a < 3",
        "raise ValueError(a < 3)",
        "return a is None",
        "return True",
        "return a[0]",
        "return a + 'text'",
        "return f'{a + b}'",
        "return a(term_offset, term_offset)",
        "return a(log, term_offset)",
        "while a:\n    b(a)",
        "offset, length = a",
        "name: int = a",
    ],
)
def test_some_expressions_are_not_edited(body):
    assert made(body) == []


def test_expressions_in_a_loop_are_edited_but_no_statement_is_dropped():
    assert made("while a:\n    a -= b + a") == [("sign", "(b - a)")]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if a < b:\n    a = b", ["(a >= b)"]),
        ("return a if a.x >= b else b", ["(a.x > b)", "(a.x < b)"]),
        ("return a if b >= a else b", ["(b < a)"]),
        ("if a < b:\n    a = b\nelse:\n    a = 0", ["(a <= b)", "(a >= b)", "1"]),
    ],
)
def test_a_choice_of_the_greater_value_is_the_same_for_equal_values(body, expected):
    assert [text for _, text in made(body)] == expected


def test_an_edit_inside_another_expression_is_found():
    operators = [operator for operator, _ in made("if a < b and a.x(b + 1):\n    a.y = min(a, 2)")]
    assert sorted(operators) == [
        "comparison", "comparison", "connective", "constant", "constant", "drop", "extreme", "sign",
    ]  # fmt: skip
