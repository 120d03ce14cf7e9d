"""Samples generated mutants: modules take turns, and each turn takes one of its module's edits.

    name = generated-<count>-<seed>-<index>  -->  the same mutants from the same sources, anywhere

So every module has equal weight, however long it is. The names are enough to make the mutants
again: `windtunnel run --mutant generated-250-7-042` repeats a run of an exam.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from windtunnel.harness.exam.generated.operators import Edit, edits
from windtunnel.harness.exam.generated.reasons import reasons
from windtunnel.harness.exam.generated.scenario_choice import CANDIDATES
from windtunnel.harness.exam.mutant import Mutant, MutantError
from windtunnel.harness.installation import ROOT

FOLDERS = ("image", "receiver", "sender", "conductor", "conductor/images", "conductor/publications")
"""Folders below driver/media_driver with protocol kernels and conductor rules."""
COUNT_MAX = 10_000
_NAME = re.compile(r"generated-(\d{1,5})-(\d{1,18})-(\d{1,5})")
_KNOWN_DECORATORS = ("kernel", "property")


def set_name(count: int, seed: int) -> str:
    """Return the name of a set of generated mutants."""
    return f"generated-{count}-{seed}"


def sound_name(count: int, seed: int) -> str:
    """Return the name to use in place of a mutant's name for the driver with a set of generated
    mutants, none of which is active.
    """
    return f"{set_name(count, seed)}-000"


def set_of(name: str) -> tuple[int, int] | None:
    """Return the count and seed of the set that a generated mutant belongs to, or None if a name
    is not that of a generated mutant.
    """
    match = _NAME.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def number_of(name: str) -> int:
    """Return the number of a generated mutant in its set, from 1. Raises ValueError if a name is
    not that of a generated mutant.
    """
    match = _NAME.fullmatch(name)
    if not match:
        raise ValueError(f"expected the name of a generated mutant, found {name!r}")
    return int(match[3])


def generate(count: int, seed: int) -> list[Mutant]:
    """Return `count` mutants of the current driver, chosen by a seed.

    Their scenarios are all candidates, of which an exam chooses.
    """
    if not 1 <= count <= COUNT_MAX:
        raise MutantError(f"expected 1 to {COUNT_MAX} generated mutants, found {count}")
    choice = random.Random(seed)
    modules = [_Module(path) for path in _module_paths()]
    for each in modules:
        choice.shuffle(each.edits)
    found: list[Mutant] = []
    while len(found) < count and any(each.edits for each in modules):
        choice.shuffle(modules)
        for each in modules[: count - len(found)]:
            mutation = each.next_mutation()
            if mutation:
                name = f"{set_name(count, seed)}-{len(found) + 1:03}"
                found.append(
                    Mutant(
                        name=name,
                        side="both",
                        scenarios=CANDIDATES,
                        **mutation._asdict(),
                    )
                )
    return found


class _Mutation(NamedTuple):
    """The fields of a mutant that an edit determines."""

    file: str
    about: str
    find: str
    replace: str
    survives_because: str


class _Module:
    """A module of the driver, and its edits that have not been taken."""

    def __init__(self, path: Path) -> None:
        self._file = path.relative_to(ROOT).as_posix()
        self._text = path.read_text(encoding="utf-8")
        tree = ast.parse(self._text)
        self._reasons = reasons().get(self._file, {})
        self.edits = [edit for each in editable_functions(tree) for edit in edits(each)]

    def next_mutation(self) -> _Mutation | None:
        """Take edits until one is found that can be applied to a unique part of the file."""
        while self.edits:
            edit = self.edits.pop()
            find, replace = _find_and_replace(self._text, edit)
            if self._text.count(find) != 1:
                continue
            before = _line(ast.get_source_segment(self._text, edit.node) or "")
            about = f"{edit.operator} in line {edit.node.lineno}: {before} -> {edit.text}"
            reason = self._reasons.get(f"{_line(find)} -> {_line(replace)}", "")
            return _Mutation(self._file, about, find, replace, reason)
        return None


def _module_paths() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from sorted((ROOT / "driver/media_driver" / folder).glob("*.py"))


def editable_functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Yield the functions and methods that `mutation_source` can replace.

    Constructors and functions that the module calls when it is imported are left out: if an
    attribute or a constant is missing, the driver does not start.
    """
    classes = [each for each in tree.body if isinstance(each, ast.ClassDef)]
    left_out = {"__init__", *_called_at_import(tree)}
    for node in (*tree.body, *(each for owner in classes for each in owner.body)):
        if not isinstance(node, ast.FunctionDef) or node.name in left_out:
            continue
        if all(
            isinstance(each, ast.Name) and each.id in _KNOWN_DECORATORS
            for each in node.decorator_list
        ):
            yield node


def _called_at_import(tree: ast.Module) -> Iterator[str]:
    statements = [
        each for each in tree.body if not isinstance(each, ast.FunctionDef | ast.ClassDef)
    ]
    for node in (part for each in statements for part in ast.walk(each)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def _find_and_replace(text: str, edit: Edit) -> tuple[str, str]:
    """Return the lines of an edit, with as many lines before them as make them unique, and the same
    lines after the edit.
    """
    lines = text.encode().splitlines(keepends=True)
    first, last = edit.node.lineno - 1, (edit.node.end_lineno or edit.node.lineno)
    before = lines[first][: edit.node.col_offset]
    after = lines[last - 1][edit.node.end_col_offset :]
    old, new = b"".join(lines[first:last]), before + edit.text.encode() + after
    whole = text.encode()
    while whole.count(old) > 1 and first:
        first -= 1
        old, new = lines[first] + old, lines[first] + new
    return old.decode(), new.decode()


def _line(text: str) -> str:
    return " ".join(text.split())
