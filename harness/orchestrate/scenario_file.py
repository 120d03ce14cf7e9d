"""Reading of scenario files that are to be run: valid in themselves, and known to the judge.

    load_scenario       the tables of the file, and the rules that involve several of them
    the registry        the checks that `expect` names, and their arguments

Every command that runs or describes a scenario reads it here, so all refuse the same files.
"""

from collections.abc import Iterable
from pathlib import Path

from windtunnel.harness.scenario.loader import ScenarioError, load_scenario
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Problem
from windtunnel.harness.scenario.validation.validation import problems
from windtunnel.harness.verdict.expectation import expectation_problems


def load_runnable(file: Path) -> Scenario:
    """Read a scenario that a run can execute and judge; ScenarioError has all problems."""
    return load_scenario(file, _problems)


def require_runnable(files: Iterable[Path]) -> None:
    """Raise ScenarioError with all problems of all files, unless each can be run."""
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
