"""The table of fault classes as values, and whether a case belongs to the class of a row."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.fault_case import FaultCase

FILE = Path(__file__).with_name("fault_classes.yaml")


@dataclass(frozen=True)
class Row:
    """One class of faults."""

    name: str
    scenario: str
    defect: str
    shows: dict[str, Any]
    backend: str | None


def rows() -> list[Row]:
    """Return all classes, in the order of the file."""
    document = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return [
        Row(each["class"], each["scenario"], each["defect"], each["shows"], each.get("backend"))
        for each in document
    ]


def is_shown(row: Row, case: Case) -> bool:
    """Return whether a case belongs to a class."""
    shows = row.shows
    if "impairments" in shows:
        return any(getattr(each, shows["impairments"]) for each in case.impairments)
    if "event" in shows:
        return any(each.action == shows["event"] for each in case.events)
    if "pace" in shows:
        return any(not getattr(each, shows["pace"]).is_unlimited for each in case.traffic)
    if "links_untouched" in shows and len(case.links) < 2:
        return False
    return bool(shows) and any(_fits(shows, fault, case) for fault in case.faults)


def _fits(shows: dict[str, Any], fault: FaultCase, case: Case) -> bool:
    found = {
        "act": fault.action,
        "chance": fault.chance,
        "place": fault.place.kind,
        "attempt": [fault.attempt.first, fault.attempt.last],
        "links_untouched": len(case.links) - len(fault.links),
    }
    plain = {key: value for key, value in shows.items() if key != "type"}
    is_of_type = "type" not in shows or shows["type"] in fault.frame_types
    return is_of_type and all(found[key] == value for key, value in plain.items())
