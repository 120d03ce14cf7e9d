"""The file of known failures: which violation of which subject is known, to whom, and until when.

    schema: windtunnel-known/1
    known:
      - {scenario: loss/reliable-2pct, check: naks_paced, subject: aeron-c, owner: Jane Doe,
         issue: "https://example.org/issues/17", expires: 2027-03-31}

Refuses to know which runs there were; `harness.verdict.core.known` lays the two beside each other.
"""

import datetime
from collections.abc import Collection
from pathlib import Path
from typing import Literal

from pydantic import Field

from windtunnel.harness.scenario.loader import ScenarioError, parse_table
from windtunnel.harness.scenario.schema import applies
from windtunnel.harness.scenario.schema.problem import Problem
from windtunnel.harness.scenario.schema.table import Table

ENTRIES_MAX = 1000


class KnownFailure(Table):
    """One violation that is known."""

    scenario: str = Field(min_length=1)
    """Name of the scenario."""

    check: str = Field(min_length=1)
    """Name of the check that fails."""

    subject: str
    """Whose violation it is, such as `ours` or `aeron-c>=1.50`."""

    owner: str = Field(min_length=1)
    """Who sees to it."""

    issue: str = Field(pattern=r"^https?://\S+$")
    """Where it is written down."""

    expires: datetime.date
    """The first day on which it is known no more."""


class KnownFailures(Table):
    """All that is known."""

    schema_name: Literal["windtunnel-known/1"] = Field(alias="schema")
    """The version of this format."""

    known: tuple[KnownFailure, ...] = Field(strict=False, max_length=ENTRIES_MAX)
    """The entries."""


def load_known(file: Path, checks: Collection[str]) -> tuple[KnownFailure, ...]:
    """Read and check a file of known failures; ScenarioError holds all that is wrong with it."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError([f"{file}: cannot be read: {error}"]) from error
    return parse_table(text, str(file), KnownFailures, lambda table: _problems(table, checks)).known


def _problems(table: KnownFailures, checks: Collection[str]) -> list[Problem]:
    found = []
    seen = set()
    for index, entry in enumerate(table.known):
        place = ("known", index)
        if entry.check not in checks:
            text = f"expected the name of a check, found {entry.check!r}"
            found.append(Problem((*place, "check"), text))
        try:
            applies.check_applies([entry.subject])
        except ValueError as error:
            found.append(Problem((*place, "subject"), str(error)))
        key = entry.scenario, entry.check, entry.subject
        if key in seen:
            found.append(Problem(place, "the same scenario, check and subject are there already"))
        seen.add(key)
    return found
