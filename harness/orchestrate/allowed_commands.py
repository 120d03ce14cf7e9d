"""Permission to execute what a scenario names: its applications, and the files of its own checks.

A scenario may come from another person. Its programs are executed only if a user has named the file
to `windtunnel run` and has allowed its commands, and never by a command that reads a run folder.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from windtunnel.harness.scenario.explain.application_lines import command_text
from windtunnel.harness.scenario.loader import ScenarioError
from windtunnel.harness.scenario.own_checks import read_source
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.units import shown

OPTION = "--allow-commands"


def require_allowed(scenarios: Iterable[tuple[Path, Scenario]]) -> None:
    """Raise ScenarioError if a scenario has applications or own checks. It names the first ones of
    each scenario.
    """
    errors = []
    for file, scenario in scenarios:
        if scenario.applications:
            first = scenario.applications[0]
            command = shown(command_text(first.image, first.command, first.build))
            text = f"{file}: the scenario starts programs on this machine, such as `{command}`: "
            text += f"read its `applications`, and allow them with `windtunnel run {file} {OPTION}`"
            errors.append(text)
        elif scenario.checks:
            text = f"{file}: the scenario executes {scenario.checks[0]} on this machine: read its "
            text += f"`checks`, and allow them with `windtunnel run {file} {OPTION}`"
            errors.append(text)
    if errors:
        raise ScenarioError(errors)


def require_files(scenarios: Iterable[tuple[Path, Scenario]]) -> None:
    """Raise ScenarioError unless all files with own checks exist and can be read."""
    errors = [error for file, scenario in scenarios for error in _unreadable(file, scenario)]
    if errors:
        raise ScenarioError(dict.fromkeys(errors))


def _unreadable(file: Path, scenario: Scenario) -> Iterator[str]:
    for name in scenario.checks:
        try:
            read_source(file.parent, name)
        except ValueError as error:
            yield f"{file}: checks: {error}"


def without_own_checks(scenario: Scenario) -> Scenario:
    """Return a scenario of a run folder without its own checks, whose files are not executed."""
    return scenario.model_copy(update={"checks": ()})
