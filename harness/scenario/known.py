"""The file of known failures: each entry has a check that fails, an owner, and an expiry date.

    schema: windtunnel-known/1
    known:
      - {scenario: loss/reliable-2pct, check: naks_paced, subject: aeron-c, owner: Jane Doe,
         issue: "https://example.org/issues/17", expires: 2027-03-31}

`harness.verdict.core.known` compares it with the results of runs.
"""

import datetime
import re
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from windtunnel.harness.scenario.loader import parse_table
from windtunnel.harness.scenario.schema import applies
from windtunnel.harness.scenario.schema.problem import Problem
from windtunnel.harness.scenario.schema.table import Table
from windtunnel.harness.scenario.yaml_document import quoted, read_yaml

ENTRIES_MAX = 1000
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _date(value: object) -> datetime.date:
    if type(value) is datetime.date:
        return value
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            return datetime.date.fromisoformat(value)
        except ValueError:
            pass  # Not in the calendar, such as 2027-02-30.
    raise ValueError(f"expected a date such as 2027-03-31, found {quoted(value)}")


class KnownFailure(Table):
    """A check that is known to fail for a scenario with a driver."""

    scenario: str = Field(min_length=1)
    """Name of the scenario."""

    check: str = Field(min_length=1)
    """Name of the check that fails."""

    subject: str
    """The driver, such as `ours` or `aeron-c>=1.50`."""

    owner: str = Field(min_length=1)
    """The person responsible."""

    issue: str = Field(pattern=r"^https?://\S+$")
    """URL of the issue."""

    expires: Annotated[datetime.date, BeforeValidator(_date)]
    """The first day on which the entry no longer applies."""


class KnownFailures(Table):
    """The contents of a known-failures file."""

    schema_name: Literal["windtunnel-known/1"] = Field(alias="schema")
    """Name and version of the file format."""

    known: tuple[KnownFailure, ...] = Field(strict=False, max_length=ENTRIES_MAX)
    """The known failures."""


def load_known(file: Path, checks: Collection[str]) -> tuple[KnownFailure, ...]:
    """Read and validate a known-failures file. Raises ScenarioError, which lists all problems."""
    return parse_table(
        read_yaml(file), str(file), KnownFailures, lambda table: _problems(table, checks)
    ).known


def _problems(table: KnownFailures, checks: Collection[str]) -> list[Problem]:
    found = []
    seen = set()
    for index, entry in enumerate(table.known):
        place = ("known", index)
        if entry.check not in checks:
            text = f"expected a check's name, found {entry.check!r}"
            found.append(Problem((*place, "check"), text))
        try:
            applies.check_applies([entry.subject])
        except ValueError as error:
            found.append(Problem((*place, "subject"), str(error)))
        key = entry.scenario, entry.check, entry.subject
        if key in seen:
            text = "an earlier entry has the same scenario, check and subject: remove one of them"
            found.append(Problem(place, text))
        seen.add(key)
    return found
