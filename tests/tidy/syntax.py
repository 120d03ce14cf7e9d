"""The parts of a Python text's syntax that the rules need, found in one pass over its statements.

Functions and imports are statements, and expressions, which most nodes of a syntax tree belong to,
have none in them.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""Attributes of a node that hold the statements in it, or nodes with statements."""


@dataclass(frozen=True)
class Outline:
    """A text's functions and imports in the order of their lines."""

    has_docstring: bool
    functions: tuple[tuple[int, str, int], ...]
    "Line, name and number of lines of each function."
    imports: tuple[tuple[int, str], ...]
    "Line of each absolute import, and the first part of the module's name."


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield all statements of a syntax tree, with their exception handlers and cases."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        for block in _BLOCKS:
            waiting += getattr(node, block, ())
        yield node


@cache
def outline(text: str) -> Outline:
    """Return the outline of a text. Several rules use the same one."""
    tree = ast.parse(text)
    functions, imports = [], []
    for node in statements(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            count = (node.end_lineno or node.lineno) - node.lineno + 1
            functions.append((node.lineno, node.name, count))
        elif isinstance(node, ast.Import):
            imports += [(node.lineno, each.name.partition(".")[0]) for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            imports.append((node.lineno, node.module.partition(".")[0]))
    docstring = ast.get_docstring(tree)
    return Outline(bool(docstring), tuple(sorted(functions)), tuple(sorted(imports)))
