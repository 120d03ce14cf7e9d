"""Many defects in one text: each function that they change stands there in all its versions.

    def scan(log, at): ...            def scan__0(log, at): ...      as it is
                              --->    def scan__7(log, at): ...      with defect 7
                                      def scan(log, at):
                                          at_work = planted.number()
                                          if at_work == 7:
                                              return scan__7(log, at)
                                          return scan__0(log, at)

So a driver with all defects is compiled once, and a number chooses. An edit must lie within
functions, of a module or of a class. Knows Python's syntax and nothing of drivers.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

SWITCH = "driver/base/planted.py"
"""Where `switch` goes."""
_IMPORT = "from windtunnel.driver.base import planted\n"
_KERNELS = frozenset({"kernel", "allocating_kernel"})
_Key = tuple[str, str]
"""Names of class and function; no class for one of a module."""


class Unplantable(ValueError):
    """An edit that reaches beyond functions."""


@dataclass(frozen=True)
class _Function:
    """One function of a text."""

    node: ast.FunctionDef
    lines: list[str]
    "From its first decorator to its last line."

    @property
    def is_kernel(self) -> bool:
        return any(
            isinstance(each, ast.Name) and each.id in _KERNELS for each in self.node.decorator_list
        )

    @property
    def start(self) -> int:
        """The line of its first decorator, or its own."""
        return _start(self.node)

    @property
    def decorators(self) -> list[str]:
        return self.lines[: self.node.lineno - self.start]

    @property
    def head(self) -> list[str]:
        """The lines of its signature."""
        return self.lines[self.node.lineno - self.start : self.node.body[0].lineno - self.start]

    def renamed(self, name: str) -> list[str]:
        """The same under another name, with no decorator but a kernel's."""
        old, new = f"def {self.node.name}(", f"def {name}("
        first, *rest = self.lines[self.node.lineno - self.start :]
        decorators = self.decorators if self.is_kernel else []
        return [*decorators, first.replace(old, new, 1), *rest]


def planted(source: str, edited: Mapping[int, str]) -> str:
    """A text with all its edited versions in it, by the numbers that choose them."""
    sound = _functions(source)
    versions: dict[_Key, dict[int, _Function]] = {}
    for number, text in edited.items():
        changed = _functions(text)
        if list(changed) != list(sound) or _without(source) != _without(text):
            raise Unplantable(f"edit {number} changes more than what lies within functions")
        for key, function in changed.items():
            if ast.dump(function.node) != ast.dump(sound[key].node):
                versions.setdefault(key, {})[number] = function
    lines = source.splitlines(keepends=True)
    # From the last to the first, so that what comes before keeps its place.
    for key in sorted(versions, key=lambda each: -sound[each].node.lineno):
        start, end = sound[key].start, sound[key].node.end_lineno
        lines[start - 1 : end] = _with_versions(sound[key], versions[key], is_method=bool(key[0]))
    at = _import_line(ast.parse(source))
    lines[at:at] = [_IMPORT]
    return "".join(lines)


def _functions(text: str) -> dict[_Key, _Function]:
    lines = text.splitlines(keepends=True)
    found: dict[_Key, _Function] = {}
    tree = ast.parse(text)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for scope, body in (("", tree.body), *((each.name, each.body) for each in classes)):
        for node in body:
            if isinstance(node, ast.FunctionDef):
                found[scope, node.name] = _Function(node, lines[_start(node) - 1 : node.end_lineno])
    return found


def _start(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _without(text: str) -> str:
    """All of a text but what its functions do."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.body = [ast.Pass()]
    return ast.dump(tree)


def _with_versions(
    sound: _Function, versions: Mapping[int, _Function], *, is_method: bool
) -> list[str]:
    name = sound.node.name
    indent = " " * sound.node.col_offset
    owner = f"{sound.node.args.args[0].arg}." if is_method else ""
    arguments = _arguments(sound.node.args, is_method=is_method)
    lines: list[str] = []
    for number, function in ((0, sound), *versions.items()):
        lines += [*function.renamed(f"{name}__{number}"), "\n"]
    chosen = "planted.number()" if sound.is_kernel else "planted.NUMBER"
    body = f"at_work = {chosen}\n"
    for number in versions:
        body += f"if at_work == {number}:\n    return {owner}{name}__{number}({arguments})\n"
    body += f"return {owner}{name}__0({arguments})\n"
    return [*lines, *sound.decorators, *sound.head, textwrap.indent(body, indent + "    ")]


def _arguments(signature: ast.arguments, *, is_method: bool) -> str:
    """The words that hand a function's arguments on."""
    plain = [each.arg for each in (*signature.posonlyargs, *signature.args)]
    words = plain[1:] if is_method else plain
    words += [f"*{signature.vararg.arg}"] if signature.vararg else []
    words += [f"{each.arg}={each.arg}" for each in signature.kwonlyargs]
    words += [f"**{signature.kwarg.arg}"] if signature.kwarg else []
    return ", ".join(words)


def _import_line(tree: ast.Module) -> int:
    """The line behind a module's docstring and its imports from the future."""
    at = 0
    for node in tree.body:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not is_text and not is_future:
            break
        at = node.end_lineno or at
    return at
