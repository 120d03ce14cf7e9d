"""Mutants: defects planted into the driver. Each one edits one file and violates one protocol rule.

name        name of the mutant
about       the protocol rule, and how the mutant violates it
file        path in the repository, within driver/
find        string that occurs exactly once in the file
replace     its replacement
side        the side that runs the mutant: sender, receiver or both
fidelity    sim if that is sufficient, since its results do not depend on the machine's load
scenarios   scenarios in which the judge should fail the run, the most likely first
killed_by   the checks that should fail
survives_because   the reason why no check can fail, only for a mutant that survives
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
"""Name to use in place of a mutant's name for the driver without an active mutant."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Side = Literal["sender", "receiver", "both"]
Fidelity = Literal["sim", "netns"]


class MutantError(ValueError):
    """A mutant is invalid or unknown. The message names the mutant and the problem."""


class Mutant(BaseModel):
    """One mutant: an edit of one source file of the driver that plants a defect."""

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
        """Apply the mutant's edit to the contents of its file, and return the result. Raises
        MutantError if the edit does not apply.
        """
        count = text.count(self.find)
        if count != 1:
            raise MutantError(
                f"mutant {self.name}: expected to find {self.find!r} once in {self.file}, "
                f"found it {count} times"
            )
        edited = text.replace(self.find, self.replace)
        try:
            trees = [ast.dump(ast.parse(each)) for each in (text, edited)]
        except SyntaxError as error:
            raise MutantError(
                f"mutant {self.name}: the edited {self.file} is not valid Python: {error}"
            ) from error
        if trees[0] == trees[1]:
            raise MutantError(f"mutant {self.name}: the edit of {self.file} has no effect")
        return edited


def load_all(folder: Path = FOLDER) -> list[Mutant]:
    """Return all mutants from the files in a folder. Raises MutantError if one is invalid."""
    found = [mutant for file in sorted(folder.glob("*.yaml")) for mutant in load_file(file)]
    names = [each.name for each in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise MutantError(
            f"{folder}: expected unique mutant names, found duplicates: {', '.join(twice)}"
        )
    return found


def load_file(file: Path) -> list[Mutant]:
    """Return the mutants in one YAML file, which is a list with one mapping per mutant."""
    try:
        rows = yaml.load(file.read_text(encoding="utf-8"), Loader=_LOADER)
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
    """Return the mutants whose names match a pattern, or all mutants if there are no patterns."""
    globs = list(patterns)
    for pattern in globs:
        if not any(fnmatchcase(each.name, pattern) for each in mutants):
            raise MutantError(f"no mutant matches {pattern!r}; see `windtunnel exam --list`")
    if not globs:
        return list(mutants)
    return [each for each in mutants if any(fnmatchcase(each.name, glob) for glob in globs)]
