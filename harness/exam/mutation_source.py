"""Merges many mutants into one source file: all versions of an edited function, and a switch
between them.

    def scan(log, at): ...            def scan__0(log, at): ...      original
                              --->    def scan__7(log, at): ...      mutant 7
                                      def scan(log, at):
                                          active_mutant = planted.number()
                                          if active_mutant == 7:
                                              return scan__7(log, at)
                                          return scan__0(log, at)

A driver with all mutants is therefore compiled only once, and a number selects the active mutant.
Each version of a mutant counts the executions of the statement that it changes. The original counts
them for each mutant, which shows the scenarios that can kill it.
An edit must be within module-level functions or methods.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from windtunnel.harness.exam.edited_statement import Place, place_of_edit

SWITCH = "driver/base/planted.py"
"""The path to which `mutation_switch` is copied in the mutated driver."""
_IMPORT = "from windtunnel.driver.base import planted\n"
ACTIVE = 0
"""Number under which the active mutant counts executions."""
_KERNELS = frozenset({"kernel", "inlined_kernel"})
INLINED = "@inlined_kernel\n"
_Key = tuple[str, str]
"""The class name and function name. The class name is empty for a module-level function."""


class MutationError(ValueError):
    """Raised if an edit changes anything except the bodies of functions."""


@dataclass(frozen=True)
class _Function:
    """A function in a source file, with its source lines."""

    node: ast.FunctionDef
    lines: list[str]
    "The source lines from the first decorator to the end of the function."

    @property
    def is_kernel(self) -> bool:
        return any(
            isinstance(each, ast.Name) and each.id in _KERNELS for each in self.node.decorator_list
        )

    @property
    def start(self) -> int:
        """The line number of the first decorator, or of `def` if there is no decorator."""
        return _start(self.node)

    @property
    def decorators(self) -> list[str]:
        return self.lines[: self.node.lineno - self.start]

    @property
    def head(self) -> list[str]:
        """The source lines of the signature."""
        return self.lines[self.node.lineno - self.start : self.node.body[0].lineno - self.start]

    def counting(self, places: Mapping[int, Place]) -> _Function:
        """Return this function with statements that count executions: for each number, the place of
        its statement in the file.
        """
        call = "planted.count" if self.is_kernel else "planted.count_in_python"
        lines = list(self.lines)
        # From last to first, so earlier line numbers stay valid.
        for number, place in sorted(
            places.items(), key=lambda each: (each[1].line, each[0]), reverse=True
        ):
            at = place.line - self.start
            lines[at:at] = [f"{' ' * place.column}{call}({number})\n"]
        return _Function(self.node, lines)

    def renamed(self, name: str) -> list[str]:
        """Return the function's source lines under another name. A kernel is never inlined: its
        caller would contain all of its versions. Another function loses its decorators.
        """
        old, new = f"def {self.node.name}(", f"def {name}("
        first, *rest = self.lines[self.node.lineno - self.start :]
        decorators = ["@planted.outlined_kernel\n"] if self.is_kernel else []
        return [*decorators, first.replace(old, new, 1), *rest]


def with_mutants(source: str, edited: Mapping[int, str]) -> str:
    """Return the source with all edited versions of its functions. At run time, the number of the
    active mutant selects the version.
    """
    original, frame = _functions(source), _without(source)
    lines = source.splitlines(keepends=True)
    versions: dict[_Key, dict[int, _Function]] = {}
    places: dict[_Key, dict[int, Place]] = {}
    for number, text in edited.items():
        changed = _functions(text)
        if list(changed) != list(original) or frame != _without(text):
            raise MutationError(
                f"edit {number}: expected changes only within functions, found changes elsewhere"
            )
        for key, function in changed.items():
            before, after = original[key].node, function.node
            if ast.dump(after) != ast.dump(before):
                place = place_of_edit(before, after, text.splitlines(keepends=True))
                versions.setdefault(key, {})[number] = function.counting({ACTIVE: place})
                places.setdefault(key, {})[number] = place_of_edit(after, before, lines)
    # Functions are replaced from last to first, so earlier line numbers stay valid.
    for key in sorted(versions, key=lambda each: -original[each].node.lineno):
        start, end = original[key].start, original[key].node.end_lineno
        counting = original[key].counting(places[key])
        lines[start - 1 : end] = _with_versions(counting, versions[key], class_name=key[0])
    at = _import_line(ast.parse(source))
    lines[at:at] = [_IMPORT]
    return "".join(lines)


def without_inlining(source: str) -> str:
    """Return a source text whose kernels are called. Where a kernel with all versions of others is
    inlined before these are optimized, the time to compile its caller is many times as long.
    """
    return source.replace(INLINED, "@kernel\n")


def activating(program: str) -> str:
    """Return the source of a program with a statement that activates the mutant of its environment
    variables, because the program may be forked from a process without one.
    """
    lines = program.splitlines(keepends=True)
    at = _import_line(ast.parse(program))
    lines[at:at] = [_IMPORT, "planted.activate()\n"]
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
    """Return the syntax tree of a source file as a string, without its functions' bodies."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.body = [ast.Pass()]
    return ast.dump(tree)


def _with_versions(
    original: _Function, versions: Mapping[int, _Function], *, class_name: str
) -> list[str]:
    # A method of the same name in a derived class does not replace the versions.
    name = f"{original.node.name}__{class_name}" if class_name else original.node.name + "_"
    indent = " " * original.node.col_offset
    owner = f"{original.node.args.args[0].arg}." if class_name else ""
    arguments = _arguments(original.node.args, is_method=bool(class_name))
    lines: list[str] = []
    for number, function in ((0, original), *versions.items()):
        lines += [*function.renamed(f"{name}_{number}"), "\n"]
    chosen = "planted.number()" if original.is_kernel else "planted.number_in_python()"
    body = f"active_mutant = {chosen}\n"
    for number in versions:
        body += f"if active_mutant == {number}:\n    return {owner}{name}_{number}({arguments})\n"
    body += f"return {owner}{name}_0({arguments})\n"
    return [*lines, *original.decorators, *original.head, textwrap.indent(body, indent + "    ")]


def _arguments(signature: ast.arguments, *, is_method: bool) -> str:
    """Return the source code of call arguments that pass all of a function's parameters on to
    another function.
    """
    names = [each.arg for each in (*signature.posonlyargs, *signature.args)]
    arguments = names[1:] if is_method else names
    arguments += [f"*{signature.vararg.arg}"] if signature.vararg else []
    arguments += [f"{each.arg}={each.arg}" for each in signature.kwonlyargs]
    arguments += [f"**{signature.kwarg.arg}"] if signature.kwarg else []
    return ", ".join(arguments)


def _import_line(tree: ast.Module) -> int:
    """Return the line after which an import can be inserted: the end of the docstring and of the
    `__future__` imports, or 0.
    """
    at = 0
    for node in tree.body:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not is_text and not is_future:
            break
        at = node.end_lineno or at
    return at
