"""Loads scenario files, and rejects files that cannot be run or judged.

    load_scenario       the sections of the file, and the rules that involve several sections
    the registry        the checks that `expect` names, and their arguments

All commands that run or describe scenarios use this module, so they reject the same files.
"""

from collections.abc import Iterable
from pathlib import Path

from windtunnel.harness.scenario.loader import ScenarioError, load_scenario
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Problem
from windtunnel.harness.scenario.validation.validation import problems
from windtunnel.harness.verdict.expectation import expectation_problems


def load_runnable(file: Path) -> Scenario:
    """Read a scenario that can be run and judged. Raises ScenarioError with all problems."""
    return load_scenario(file, _problems)


def require_runnable(files: Iterable[Path]) -> None:
    """Raise ScenarioError with the problems of all files, unless all scenarios can be run."""
    errors: list[str] = []
    for file in dict.fromkeys(files):
        try:
            load_runnable(file)
        except ScenarioError as error:
            errors += error.errors
    if errors:
        raise ScenarioError(errors)


def _problems(scenario: Scenario) -> list[Problem]:
    return [*problems(scenario), *expectation_problems(scenario)]
