"""Mutants as data: one edit of one file of the driver, the law that it breaks, and who should see.

name        how it is called
about       which law of the protocol is broken, in a sentence
file        path below the repository, in driver/
find        text that is there exactly once
replace     what stands there instead
side        whose driver and workloads run it: sender, receiver or both
fidelity    where it is examined: sim where nothing else is needed, for there no load excuses
scenarios   in which the judge should say no, the likeliest first
killed_by   the checks that should say no
survives_because   why none can say no; only of one that survives
"""

import ast
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from windtunnel.harness.scenario.schema.table import Name

FOLDER = Path(__file__).parent / "mutants"
NONE = "none"
"""Stands for the copy of the driver that has all mutants, with none of them at work."""
Side = Literal["sender", "receiver", "both"]
Fidelity = Literal["sim", "netns"]


class MutantError(ValueError):
    """A mutant that cannot be: the text names it and says what was expected."""


class Mutant(BaseModel):
    """One planted defect."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Name
    about: str = Field(min_length=1)
    file: str = Field(pattern=r"^driver/[\w/]+\.py$")
    find: str = Field(min_length=1)
    replace: str
    side: Side
    fidelity: Fidelity = "sim"
    scenarios: Annotated[tuple[str, ...], Field(strict=False, min_length=1)]
    killed_by: Annotated[tuple[str, ...], Field(strict=False)] = ()
    survives_because: str = ""

    def applied(self, text: str) -> str:
        """The file's text with the defect in it; MutantError unless it fits and still is Python."""
        count = text.count(self.find)
        if count != 1:
            raise MutantError(
                f"mutant {self.name}: expected the text {self.find!r} once in {self.file}, "
                f"found it {count} times"
            )
        edited = text.replace(self.find, self.replace)
        try:
            trees = [ast.dump(ast.parse(each)) for each in (text, edited)]
        except SyntaxError as error:
            raise MutantError(
                f"mutant {self.name}: {self.file} is not Python any more: {error}"
            ) from error
        if trees[0] == trees[1]:
            raise MutantError(f"mutant {self.name}: its edit of {self.file} changes nothing")
        return edited


def load_all(folder: Path = FOLDER) -> list[Mutant]:
    """All mutants of a folder's files, in the order of the files; MutantError if one is wrong."""
    found = [mutant for file in sorted(folder.glob("*.yaml")) for mutant in load_file(file)]
    names = [each.name for each in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise MutantError(f"{folder}: {', '.join(twice)}: expected each mutant's name once")
    return found


def load_file(file: Path) -> list[Mutant]:
    """The mutants of one file, which is a list of tables."""
    try:
        rows = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise MutantError(f"{file}: cannot be read: {error}") from error
    if not isinstance(rows, list):
        raise MutantError(f"{file}: expected a list of mutants, found {type(rows).__name__}")
    return [_mutant(file, row, number) for number, row in enumerate(rows, 1)]


def _mutant(file: Path, row: object, number: int) -> Mutant:
    try:
        return Mutant.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(step) for step in first["loc"])
        raise MutantError(f"{file}: mutant {number}: {key}: {first['msg']}") from error


def chosen(mutants: Sequence[Mutant], patterns: Iterable[str]) -> list[Mutant]:
    """Those whose names match one of some patterns with `*`; all when there is no pattern."""
    wanted = list(patterns)
    for pattern in wanted:
        if not any(fnmatchcase(each.name, pattern) for each in mutants):
            raise MutantError(f"no mutant is called {pattern!r}; see `windtunnel exam --list`")
    if not wanted:
        return list(mutants)
    return [each for each in mutants if any(fnmatchcase(each.name, one) for one in wanted)]


def by_name(name: str, folder: Path = FOLDER) -> Mutant:
    """The mutant of that name; MutantError if there is none."""
    for each in load_all(folder):
        if each.name == name:
            return each
    raise MutantError(f"no mutant is called {name!r}; see `windtunnel exam --list`")
