"""Loads scenario files, and rejects files that cannot be run or judged.

    load_variants       the sections of the file, and the rules that involve several sections
    the registry        the checks that `expect` names, and their arguments

All commands that run or describe scenarios use this module, so they reject the same files.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from windtunnel.harness.artifact.suite_dir import run_name
from windtunnel.harness.installation import SCENARIOS
from windtunnel.harness.orchestrate.allowed_commands import require_allowed, require_files
from windtunnel.harness.scenario.loader import (
    LoadedScenario,
    ScenarioError,
    load_scenario,
    load_variants,
)
from windtunnel.harness.scenario.schema.channel import with_parameters
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Problem
from windtunnel.harness.scenario.validation.validation import problems
from windtunnel.harness.verdict.expectation import expectation_problems

UNCHANGED: Mapping[str, str] = {}
FINDINGS = "findings"
"""The scenario folder that shows defects of drivers."""


def load_runnable(file: Path) -> Scenario:
    """Read a scenario that can be run and judged. Raises ScenarioError with all problems. Returns
    the first variant if the scenario has a sweep.
    """
    return load_all_runnable(file)[0].scenario


def load_all_runnable(
    file: Path,
    receive: Mapping[str, str] = UNCHANGED,
    settings: Mapping[str, str] = UNCHANGED,
) -> list[LoadedScenario]:
    """Read all variants of a scenario. `receive` contains channel parameters, which override those
    of all subscriptions. `settings` are values to set, by name.
    """
    loaded = load_variants(file, lambda found: _problems(_with_receive(found, receive)), settings)
    return [replace(each, scenario=_with_receive(each.scenario, receive)) for each in loaded]


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
    settings: Mapping[str, str] = UNCHANGED,
    *,
    allow_commands: bool = False,
) -> list[Scenario]:
    """Return all scenarios. Raises ScenarioError with the problems of all files, unless all
    scenarios can be run and have run folders of their own. Those with applications or own checks
    need `allow_commands`.
    """
    errors: list[str] = []
    loaded: list[tuple[Path, Scenario]] = []
    for file in dict.fromkeys(files):
        try:
            found = load_all_runnable(file, receive, settings)
            loaded += [(file, each.scenario) for each in found]
        except ScenarioError as error:
            errors += error.errors
    errors += _same_names(loaded)
    if errors:
        raise ScenarioError(errors)
    if not allow_commands:
        require_allowed(dict(loaded).items())
    require_files(loaded)
    return [scenario for _, scenario in loaded]


def _same_names(loaded: Iterable[tuple[Path, Scenario]]) -> list[str]:
    """Return an error for each scenario whose runs would overwrite those of an earlier one."""
    errors: list[str] = []
    first: dict[str, tuple[Path, str]] = {}
    for file, scenario in loaded:
        other, name = first.setdefault(run_name(scenario.name, 0), (file, scenario.name))
        if other != file:
            text = f"expected another name than that of {other}, {name}"
            errors.append(f"{file}: name: {text}: their run folders would be the same")
    return errors


def _problems(scenario: Scenario) -> list[Problem]:
    return [*problems(scenario), *expectation_problems(scenario)]


def supporting(fidelity: str) -> list[Path]:
    """Return the files of the scenarios that support a fidelity level, but for those that show
    defects of drivers, in the order of their names.
    """
    files = [each for each in sorted(SCENARIOS.glob("*/*.yaml")) if each.parent.name != FINDINGS]
    return [each for each in files if fidelity in load_scenario(each).fidelity]
