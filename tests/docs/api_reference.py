"""The reference page of the public Python modules, from their source: names, arguments, docstrings.

Nothing is imported. A name of `__all__` is followed to the module that defines it.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = (
    "windtunnel.driver.media_driver.media_driver",
    "windtunnel.driver.media_driver.context",
    "windtunnel.driver.client",
    "windtunnel.driver.client.compiled_loops",
    "windtunnel.driver.archive.client",
    "windtunnel.harness.lab",
    "windtunnel.harness.checks",
    "windtunnel.reports",
)
_HIDDEN_BASES = ("Protocol", "object")


@dataclass(frozen=True)
class Definition:
    """A public class or function, and the module that defines it."""

    name: str
    module: str
    node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def page() -> str:
    """Return the page: one section for each public module."""
    lines = ["# Python API", "", "Names that are not listed here are internal."]
    for module in MODULES:
        lines += ["", f"## {module}", "", _summary(ast.get_docstring(_tree(module)))]
        for name in public_names(module):
            found = definition(module, name)
            if found is not None:
                lines += _entry(found)
    return "\n".join(lines) + "\n"


def public_names(module: str) -> list[str]:
    """Return the names in a module's `__all__` or, without it, those that it defines."""
    tree = _tree(module)
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    ]


def definition(module: str, name: str) -> Definition | None:
    """Return the class or function with this name, or None for a constant."""
    for node in _tree(module).body:
        is_definition = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if is_definition and node.name == name:
            return Definition(name, module, node)
        is_ours = isinstance(node, ast.ImportFrom) and (node.module or "").startswith("windtunnel.")
        if isinstance(node, ast.ImportFrom) and node.module and is_ours:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return definition(node.module, alias.name)
    return None


def _path(module: str) -> Path:
    base = ROOT.joinpath(*module.split(".")[1:])
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


def _tree(module: str) -> ast.Module:
    return ast.parse(_path(module).read_text(encoding="utf-8"))


def _entry(found: Definition) -> list[str]:
    node = found.node
    if not isinstance(node, ast.ClassDef):
        return ["", f"### {found.name}", "", f"`{_signature(node)}`", "", _summary(_doc(node))]
    bases = [ast.unparse(each) for each in node.bases]
    shown = [each for each in bases if each not in _HIDDEN_BASES and not each.startswith("_")]
    suffix = f"({', '.join(shown)})" if shown else ""
    lines = ["", f"### {found.name}", "", f"`class {found.name}{suffix}`", "", _summary(_doc(node))]
    members = _members(found)
    fields = list(_fields(node))
    if members or fields:
        lines += ["", "| member | purpose |", "| --- | --- |"]
        lines += [f"| `{name}` | {_cell(_summary(text))} |" for name, text in fields]
        lines += [
            f"| `{_cell(_member(each))}` | {_cell(_summary(_doc(each)))} |" for each in members
        ]
    return lines


def _members(found: Definition) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the public methods of a class, then those that it inherits from classes without an
    entry of their own.
    """
    assert isinstance(found.node, ast.ClassDef)
    members = [
        each
        for each in found.node.body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        and (not each.name.startswith("_") or each.name == "__init__")
        and not any(ast.unparse(mark).endswith(".setter") for mark in each.decorator_list)
    ]
    public = {name for module in MODULES for name in public_names(module)}
    for base in found.node.bases:
        inherited = definition(found.module, ast.unparse(base))
        if (
            inherited is None
            or not isinstance(inherited.node, ast.ClassDef)
            or inherited.name in public
        ):
            continue
        own = {each.name for each in members}
        members += [
            each for each in _members(inherited) if each.name not in own and each.name != "__init__"
        ]
    return members


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield the name and the docstring of each public field of a dataclass."""
    if not any("dataclass" in ast.unparse(mark) for mark in node.decorator_list):
        return
    for each, after in zip(node.body, [*node.body[1:], None], strict=True):
        if not isinstance(each, ast.AnnAssign) or not isinstance(each.target, ast.Name):
            continue
        text = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            text = str(after.value.value)
        if not each.target.id.startswith("_"):
            yield each.target.id, text


def _member(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    marks = [ast.unparse(each) for each in node.decorator_list]
    return node.name if {"property", "cached_property"} & {*marks} else _signature(node)


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    arguments = ast.unparse(node.args)
    arguments = re.sub(r"^(self|cls)(, )?", "", arguments)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"{prefix}{node.name}({arguments}){returns}"


def _doc(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    return ast.get_docstring(node)


def _summary(text: str | None) -> str:
    """Return the first paragraph of a docstring on one line."""
    return " ".join((text or "").partition("\n\n")[0].split()).replace("<", "&lt;")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
