"""Permission to start the applications of scenarios, which are programs that a file names.

A scenario may come from somebody else. Its applications are started only if a user has named the
file to `windtunnel run` and has allowed its commands, and never by a command that reads a run
folder.
"""

from collections.abc import Iterable
from pathlib import Path

from windtunnel.harness.scenario.explain.application_lines import command_text
from windtunnel.harness.scenario.loader import ScenarioError
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.units import shown

OPTION = "--allow-commands"


def require_allowed(scenarios: Iterable[tuple[Path, Scenario]]) -> None:
    """Raise ScenarioError if a scenario has applications. It names the first of each scenario."""
    errors = []
    for file, scenario in scenarios:
        if scenario.applications:
            first = scenario.applications[0]
            command = shown(command_text(first.image, first.command))
            text = f"{file}: the scenario starts programs on this machine, such as `{command}`: "
            text += f"read its `applications`, and allow them with `windtunnel run {file} {OPTION}`"
            errors.append(text)
    if errors:
        raise ScenarioError(errors)
