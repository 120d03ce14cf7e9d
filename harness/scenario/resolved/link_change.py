"""Changes of links while a run is in progress: what was requested, and what the relay applied.

    harness --link-requests.json, a signal--> relay --link-changes.json--> harness, judge

A request has the new impairments of some link directions, which replace all earlier ones. The relay
applies a request at once, between two packets, and records the time and the counts of the direction
so far. The judge can therefore compare each period between two changes with its own impairments.
"""

import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.middlebox.impairment_account import ImpairmentAccount
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.case_validation import impairment_problems
from windtunnel.harness.scenario.resolved.impairment_case import FORMER_NAMES, ImpairmentCase
from windtunnel.harness.scenario.resolved.link_case import CHANGES_MAX
from windtunnel.harness.scenario.resolved.stored_part import StoredPart
from windtunnel.harness.scenario.schema.part import Part

CHANGE_SIGNAL = signal.SIGUSR1
"""The signal that notifies the relay of new requests."""
CHANGED = "changed"
"""First word of the line that the relay prints when it has applied a request."""
COUNT_MAX = (1 << 63) - 1
COUNTS = ("received", "lost", "overflowed", "duplicated", "corrupted", "reordered", "sent")
"""The counts of an account that a change records."""


class LinkRequest(Part):
    """The new impairments of some link directions."""

    number: int = Field(ge=1, le=CHANGES_MAX)
    """Number of the request, from 1."""
    impairments: tuple[ImpairmentCase, ...] = Field(validation_alias=FORMER_NAMES)


class LinkCounts(Part):
    """The datagrams of a link direction that the impairments have affected so far."""

    received: int = Field(default=0, ge=0, le=COUNT_MAX)
    lost: int = Field(default=0, ge=0, le=COUNT_MAX)
    overflowed: int = Field(default=0, ge=0, le=COUNT_MAX)
    duplicated: int = Field(default=0, ge=0, le=COUNT_MAX)
    corrupted: int = Field(default=0, ge=0, le=COUNT_MAX)
    reordered: int = Field(default=0, ge=0, le=COUNT_MAX)
    sent: int = Field(default=0, ge=0, le=COUNT_MAX)


class LinkChange(Part):
    """One change of a link direction that the relay has applied."""

    number: int = Field(ge=1, le=CHANGES_MAX)
    """Number of the request."""
    at_ns: int = Field(ge=0, le=COUNT_MAX)
    impairments: ImpairmentCase = Field(validation_alias=FORMER_NAMES)
    """The impairments from now on."""
    counts: LinkCounts
    """The counts of the direction until now."""


class LinkRequests(StoredPart):
    """link-requests.json: all requests so far."""

    schema_name: Literal["windtunnel-link-requests/1"] = Field(
        default="windtunnel-link-requests/1", alias="schema"
    )
    requests: tuple[LinkRequest, ...] = Field(default=(), max_length=CHANGES_MAX)


class LinkChanges(StoredPart):
    """link-changes.json: the changes that the relay has applied, in order."""

    schema_name: Literal["windtunnel-link-changes/1"] = Field(
        default="windtunnel-link-changes/1", alias="schema"
    )
    changes: tuple[LinkChange, ...] = Field(default=(), max_length=CHANGES_MAX)


@dataclass(frozen=True)
class LinkPeriod:
    """A period in which the impairments of a link direction did not change."""

    impairment: ImpairmentCase
    account: ImpairmentAccount
    """What the impairments affected in this period."""


def read_changes(path: Path, case: Case) -> tuple[LinkChange, ...] | None:
    """Return the changes of a run's links, or None if the file is missing. Raises DocumentError for
    values that the relay never writes.
    """
    found = LinkChanges.read(path)
    if found is None:
        return None
    for index, change in enumerate(found.changes):
        at = ("changes", index, "impairments")
        for problem in impairment_problems(change.impairments, at, case.link_names):
            raise DocumentError(
                f"{path.name}: {'.'.join(map(str, problem.path))}: {problem.text}", path
            )
    times = [each.at_ns for each in found.changes]
    if times != sorted(times):
        raise DocumentError(f"{path.name}: expected changes in the order of their times", path)
    return found.changes


def periods(
    case: Case, changes: Sequence[LinkChange], link: str, total: ImpairmentAccount
) -> Iterator[LinkPeriod]:
    """Yield the periods of a link direction, given its account at the end."""
    impairment = case.impairments_of(link) or ImpairmentCase(link=link)
    before = LinkCounts()
    for each in changes:
        if each.impairments.link == link:
            yield LinkPeriod(impairment, _difference(each.counts, before))
            impairment, before = each.impairments, each.counts
    last = {name: getattr(total, name) - getattr(before, name) for name in COUNTS}
    yield LinkPeriod(impairment, replace(total, **last))


def _difference(after: LinkCounts, before: LinkCounts) -> ImpairmentAccount:
    return ImpairmentAccount(
        **{name: getattr(after, name) - getattr(before, name) for name in COUNTS}
    )
