"""The set of mutants that a name belongs to: the written ones, or a set of generated ones.

One copy of the driver contains one set. The driver without a defect has a name in each set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from windtunnel.harness.exam.generated.generation import generate, set_name, set_of, sound_name
from windtunnel.harness.exam.mutant import NONE, Mutant, MutantError, load_all


class MutantSet(NamedTuple):
    """Mutants that are compiled together."""

    name: str
    "Name of a generated set, or empty for the written mutants."
    sound: str
    "Name to use in place of a mutant's name for the driver without an active mutant."
    mutants: Sequence[Mutant]

    def chosen(self, name: str) -> Mutant | None:
        """Return the mutant with a name, or None for the driver without an active mutant. Raises
        MutantError if it does not exist.
        """
        if name == self.sound:
            return None
        for each in self.mutants:
            if each.name == name:
                return each
        raise MutantError(f"no mutant has the name {name!r}; see `windtunnel exam --list`")


def written() -> MutantSet:
    """Return the written mutants."""
    return MutantSet("", NONE, load_all())


def generated(count: int, seed: int) -> MutantSet:
    """Return a set of generated mutants. Raises MutantError if the count is out of range."""
    return MutantSet(set_name(count, seed), sound_name(count, seed), generate(count, seed))


def of_name(name: str) -> MutantSet:
    """Return the set of mutants that a mutant's name belongs to."""
    of = set_of(name)
    return generated(*of) if of else written()
