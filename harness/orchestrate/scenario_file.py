"""Loads scenario files, and rejects files that cannot be run or judged.

    load_scenario       the sections of the file, and the rules that involve several sections
    the registry        the checks that `expect` names, and their arguments

All commands that run or describe scenarios use this module, so they reject the same files.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from windtunnel.harness.orchestrate.allowed_commands import require_allowed
from windtunnel.harness.scenario.loader import ScenarioError, load_scenario
from windtunnel.harness.scenario.schema.channel import with_parameters
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Problem
from windtunnel.harness.scenario.validation.validation import problems
from windtunnel.harness.verdict.expectation import expectation_problems

UNCHANGED: Mapping[str, str] = {}


def load_runnable(file: Path, receive: Mapping[str, str] = UNCHANGED) -> Scenario:
    """Read a scenario that can be run and judged. Raises ScenarioError with all problems.

    `receive` contains channel parameters, which override those of all subscriptions.
    """
    scenario = load_scenario(file, lambda found: _problems(_with_receive(found, receive)))
    return _with_receive(scenario, receive)


def _with_receive(scenario: Scenario, parameters: Mapping[str, str]) -> Scenario:
    """Return a copy of the scenario with the given parameters in the channels of all
    subscriptions.
    """
    if not parameters:
        return scenario
    traffic = tuple(
        each.model_copy(
            update={
                "receive": with_parameters(each.receive, parameters),
                "receives": {
                    host: with_parameters(channel, parameters)
                    for host, channel in each.receives.items()
                },
            }
        )
        for each in scenario.traffic
    )
    return scenario.model_copy(update={"traffic": traffic})


def require_runnable(
    files: Iterable[Path],
    receive: Mapping[str, str] = UNCHANGED,
    *,
    allow_commands: bool = False,
) -> list[Scenario]:
    """Return all scenarios. Raises ScenarioError with the problems of all files, unless all
    scenarios can be run. Those with applications need `allow_commands`.
    """
    errors: list[str] = []
    loaded = []
    distinct = list(dict.fromkeys(files))
    for file in distinct:
        try:
            loaded.append(load_runnable(file, receive))
        except ScenarioError as error:
            errors += error.errors
    if errors:
        raise ScenarioError(errors)
    if not allow_commands:
        require_allowed(zip(distinct, loaded, strict=True))
    return loaded


def _problems(scenario: Scenario) -> list[Problem]:
    return [*problems(scenario), *expectation_problems(scenario)]
