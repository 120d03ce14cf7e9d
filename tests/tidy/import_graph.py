"""The import graph of the product, module by module, type hints and late imports included."""

import ast
from pathlib import Path

from tests.tidy.syntax import statements

PACKAGE = "windtunnel"


def modules(root: Path, folders: tuple[str, ...]) -> dict[str, Path]:
    """Return the files of all modules below some folders of a source root, by full name."""
    found = {}
    for folder in folders:
        for path in (root / folder).rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join((PACKAGE, *(parts[:-1] if parts[-1] == "__init__" else parts)))
            found[name] = path
    return found


def imports(text: str, known: set[str]) -> set[str]:
    """Return the known modules that a module's text imports anywhere."""
    found = set()
    for node in statements(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.add(name if name in known else node.module)
    return found & known


def graph(files: dict[str, Path]) -> dict[str, set[str]]:
    known = set(files)
    return {
        name: imports(path.read_text(encoding="utf-8"), known) - {name}
        for name, path in files.items()
    }


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return groups of modules that import each other, directly or not (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found
