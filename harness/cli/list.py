"""`windtunnel list`: lists the included scenarios, or the judge's checks and gates."""

import json
import textwrap
from pathlib import Path

import click

from windtunnel.harness.cli import exit_code, scenarios
from windtunnel.harness.cli.failure import Failure
from windtunnel.harness.cli.render.table import printable

CHECK, BUILT_IN, GATE = "check", "built-in check", "gate"
LINE_WIDTH = 120
HEADINGS = {
    CHECK: "Checks of the driver that a scenario's `expect` can name",
    BUILT_IN: "Checks that run without an entry in `expect`",
    GATE: "Gates: conditions on the harness, checked in every run",
}


@click.command("list", short_help="List the included scenarios, or the judge's checks and gates.")
@click.option(
    "--checks", is_flag=True, help="List the judge's checks and gates instead of the scenarios."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def list_scenarios(checks: bool, as_json: bool) -> None:
    """List the included scenarios with their descriptions, or the judge's checks and gates."""
    if checks:
        _print_checks(as_json)
    else:
        _print_scenarios(as_json)


def _print_scenarios(as_json: bool) -> None:
    rows = []
    for name in scenarios.names():
        about, fidelity = _heading(scenarios.find(name))
        rows.append(
            {
                "name": name,
                "about": " ".join(about.split()),
                "fidelity": fidelity,
                "main": name in scenarios.MAIN,
            }
        )
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    for row in rows:
        mark = "  (main)" if row["main"] else ""
        click.echo(click.style(str(row["name"]), bold=True) + mark)
        about = printable(str(row["about"]))
        click.echo(textwrap.fill(about, 96, initial_indent="    ", subsequent_indent="    "))


def _heading(file: Path) -> tuple[str, list[str]]:
    """Return a scenario's description and the fidelity levels (netns, compose, sim) at which it can
    run.

    They are above `network` in each included scenario, so the rest of the file is not parsed. A
    file without them is loaded completely, which reports its errors.
    """
    from windtunnel.harness.scenario.yaml_document import ScenarioError, YamlDocument, read_yaml

    try:
        text, _, _ = read_yaml(file).partition("\nnetwork:")
        match YamlDocument(text, str(file)).value:
            case {"about": str(about), "fidelity": [*fidelity]}:
                return about, fidelity
        from windtunnel.harness.scenario.loader import load_scenario

        loaded = load_scenario(file)
    except ScenarioError as error:
        raise Failure(str(error), exit_code.USAGE) from error
    return loaded.about, list(loaded.fidelity)


def _print_checks(as_json: bool) -> None:
    rows = _judged()
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    width = max(len(row["name"]) for row in rows)
    for role, heading in HEADINGS.items():
        click.echo(click.style(heading, bold=True))
        for row in rows:
            if row["role"] == role:
                indent = f"  {row['name']:<{width}}  "
                lines = textwrap.wrap(row["about"], LINE_WIDTH - len(indent))
                click.echo(indent + f"\n{' ' * len(indent)}".join(lines))


def _judged() -> list[dict[str, str]]:
    """Return all gates and checks, with the kind of violation that each check detects."""
    from windtunnel.harness.verdict.automatic import AUTOMATIC
    from windtunnel.harness.verdict.registry import CHECKS, GATES, first_sentence

    checks = [
        {"name": each.name, "role": CHECK, "kind": str(each.kind), "about": each.about}
        for each in CHECKS.values()
    ]
    automatic = [
        {"name": name, "role": BUILT_IN, "about": first_sentence(check)}
        for name, check in AUTOMATIC.items()
    ]
    gates = [
        {"name": name, "role": GATE, "about": first_sentence(gate)} for name, gate in GATES.items()
    ]
    return [*checks, *automatic, *gates]
