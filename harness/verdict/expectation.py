"""Validates the check names and check arguments in a scenario's `expect`.

The judge would find the same errors, but only after the run.
"""

from collections.abc import Iterator

from windtunnel.harness.scenario import frame_expectation
from windtunnel.harness.scenario.schema import applies
from windtunnel.harness.scenario.schema.model import Check, Scenario
from windtunnel.harness.scenario.schema.problem import Path, Problem, unknown_name
from windtunnel.harness.scenario.schema.units import parse_bytes
from windtunnel.harness.verdict.registry import CHECKS

TRAFFIC, TO = "traffic", "to"
ARGUMENTS = (TRAFFIC, TO, applies.KEY)
"""The arguments that every check accepts."""


def expectation_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield a problem for each unknown check, and for each argument that cannot be applied."""
    for index, check in enumerate(scenario.expect):
        path: Path = ("expect", index, check.name) if check.arguments else ("expect", index)
        if check.name not in CHECKS:
            hint = "see `windtunnel list --checks`"
            yield Problem(path, unknown_name("the name of a check", check.name, CHECKS, hint))
        elif check.name == frame_expectation.NAME:
            yield from frame_expectation.expectation_problems(scenario, check.arguments, path)
        else:
            yield from _arguments(scenario, check, path)


def _arguments(scenario: Scenario, check: Check, path: Path) -> Iterator[Problem]:
    found = []
    limit = CHECKS[check.name].limit
    known = ARGUMENTS if limit is None else (*ARGUMENTS, limit.argument)
    for name in check.arguments:
        if name not in known:
            hint = f"the arguments are {', '.join(known)}"
            text = unknown_name("an argument of a check", name, known, hint)
            found.append(Problem((*path, name), text))
        elif limit is not None and name == limit.argument:
            try:
                parse_bytes(check.arguments[name])
            except ValueError as error:
                found.append(Problem((*path, name), str(error)))
    ids = [each.id for each in scenario.traffic]
    for chosen in _listed(check, TRAFFIC):
        if chosen not in ids:
            hint = f"the ids are {', '.join(ids)}"
            text = unknown_name("the id of a stream", chosen, ids, hint)
            found.append(Problem((*path, TRAFFIC), text))
    yield from found
    if not found and not _selects_a_flow(scenario, check):
        text = "expected arguments that select a subscriber, found none: a `partial` subscriber "
        yield Problem(path, f"{text}must be named in `{TO}`")


def _listed(check: Check, key: str) -> list[object]:
    chosen: object = check.arguments.get(key, [])
    return chosen if isinstance(chosen, list) else [chosen]


def _selects_a_flow(scenario: Scenario, check: Check) -> bool:
    """Return whether a check applies to at least one subscriber of one stream."""
    return any(
        (TRAFFIC not in check.arguments or traffic.id in _listed(check, TRAFFIC))
        and (host in _listed(check, TO) if TO in check.arguments else host not in traffic.partial)
        for traffic in scenario.traffic
        for host in traffic.to_hosts
    )
